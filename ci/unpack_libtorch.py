"""Unpacks from LibTorch's wheels what a C++ program on a CPU needs: headers, three libraries and the two CUDA libraries
that libtorch_cpu.so loads. The rest of the wheel (Python, CUDA kernels, tests) is two thirds of it.

usage: unpack_libtorch.py FOLDER_OF_WHEELS DESTINATION    (each wheel is deleted once it is unpacked)
"""
import pathlib
import re
import sys
import zipfile

WANTED = re.compile(
    r"torch/(include|share)/"
    r"|torch/lib/(libtorch_cpu|libc10|libgomp[^/]*)\.so"
    r"|nvidia/cu13/lib/lib(cudart|cupti)\.so")


def main() -> None:
    wheels, destination = map(pathlib.Path, sys.argv[1:])
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [n for n in archive.namelist() if WANTED.match(n) and not n.endswith("/")]
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
