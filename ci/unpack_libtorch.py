"""Unpacks from LibTorch's wheels what a C++ program on a CPU needs: headers, three libraries and the two CUDA libraries
that libtorch_cpu.so loads. The rest of the wheel (Python, CUDA kernels, tests) is two thirds of it. With --cuda also
the libraries that a program on a GPU links.

usage: unpack_libtorch.py [--cuda] FOLDER_OF_WHEELS DESTINATION    (each wheel is deleted once it is unpacked)
"""
import pathlib
import re
import sys
import zipfile

WANTED = re.compile(
    r"torch/(include|share)/"
    r"|torch/lib/(libtorch_cpu|libc10|libgomp[^/]*)\.so"
    r"|nvidia/cu13/lib/lib(cudart|cupti)\.so")

WANTED_CUDA = re.compile(
    r"torch/lib/(libtorch_cuda|libtorch_cuda_linalg|libtorch_nvshmem|libc10_cuda)\.so"
    r"|nvidia/[^/]*/lib/lib(cufile|cusparseLt|nvshmem_host)\.so")


def main() -> None:
    cuda = sys.argv[1] == "--cuda"
    wheels, destination = map(pathlib.Path, sys.argv[2 if cuda else 1:])
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [n for n in archive.namelist() if not n.endswith("/")
                     and (WANTED.match(n) or cuda and WANTED_CUDA.match(n))]
            print(f"{wheel.name}: {len(names)} files", flush=True)
            for name in names:
                path = destination / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, open(path, "wb") as sink:
                    while block := source.read(1 << 20):
                        sink.write(block)
        wheel.unlink()


if __name__ == "__main__":
    main()
