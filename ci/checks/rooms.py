"""The table of rooms in CMakeLists.txt, and the rules for #include that follow from it.

A room may include its own headers, those of the rooms in its row, and what those may. Its tests may also include
engine/sim (which hosts every seam in memory), the row's TEST_ROOMS, and the test libraries. A library's headers may be
included where LINK gives the library to the room or to one that it may include; LibTorch's only in a row that says
TORCH itself. System calls in engine/ and faults/ belong to engine/os alone.
"""
import pathlib
import re
from typing import Iterator

from checks.source import Finding, Source

CODE_FOLDERS = ("engine", "faults", "harness")

STANDARD = set("""
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes
    climits clocale cmath compare complex concepts condition_variable coroutine csignal cstdarg cstddef cstdint
    cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution filesystem format forward_list
    fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale
    map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
    scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf
    string string_view syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map
    unordered_set utility valarray variant vector version""".split())
THREADS = set("thread mutex shared_mutex condition_variable future semaphore latch barrier stop_token".split())
FILES = set("filesystem fstream cstdio csignal".split())
SYSTEM = re.compile(r"(sys|linux|net|netinet|arpa|asm|bits)/|(unistd|fcntl|signal|poll|dirent|spawn|sched|dlfcn|pthread"
                    r"|errno|termios|execinfo|time|stdlib|stdio|string|pwd|netdb|glob|ucontext|ifaddrs)\.h$")
COMPILER = ("immintrin.h", "nmmintrin.h", "xmmintrin.h", "cxxabi.h", "sanitizer/")
LIBRARIES = {  # what LINK calls it -> its headers
    "fmt::fmt": ("fmt/",),
    "Boost::headers": (
        "boost/asio", "boost/container", "boost/optional", "boost/process", "boost/system", "boost/type_traits",
    ),
    "Boost::context": ("boost/context/",),
    "nlohmann_json::nlohmann_json": ("nlohmann/",),
    "simdjson::simdjson": ("simdjson.h",),
    "yaml-cpp": ("yaml-cpp/",),
    "CLI11::CLI11": ("CLI/",),
    "spdlog::spdlog": ("spdlog/",),
    "firedrill_rocksdb": ("rocksdb/",),
    "firedrill_cuda": ("cuda_runtime_api.h", "nccl.h"),
    "Threads::Threads": (),
}
TORCH = ("torch/", "ATen/", "c10/")
GENERATED = "firedrill_build.h"  # version and commit; the build writes it
TESTING = ("gtest/", "gmock/", "rapidcheck/", "rapidcheck.h", "benchmark/")


class Rooms:
    def __init__(self, cmake: str):
        self.rooms: dict[str, list[str]] = {}
        self.test_rooms: dict[str, list[str]] = {}
        self.links: dict[str, list[str]] = {}
        self.torch: set[str] = set()
        cmake = re.sub(r"#[^\n]*", "", cmake)
        # A variable of the table stands for all that it is ever set to; others are names of libraries.
        variables: dict[str, list[str]] = {}
        for name, values in re.findall(r"\bset\((\w+)\s+([^)]*)\)", cmake):
            variables.setdefault(name, []).extend(v for v in values.split() if v != '""')
        for row in re.findall(r"firedrill_room\(([^)]*)\)", cmake):
            words = row.split()
            folder, key = words[0], ""
            lists: dict[str, list[str]] = {"ROOMS": [], "TEST_ROOMS": [], "LINK": [], "EXECUTABLE": [],
                                           "PRECOMPILED": []}
            for word in words[1:]:
                if word == "TORCH":
                    self.torch.add(folder)
                elif word in lists:
                    key = word
                else:
                    name = word.removeprefix("${").removesuffix("}")
                    lists[key] += variables.get(name, [name]) if word != name else [name]
            self.rooms[folder], self.test_rooms[folder] = lists["ROOMS"], lists["TEST_ROOMS"]
            self.links[folder] = lists["LINK"]

    def room_of(self, path: str) -> str | None:
        fitting = [r for r in self.rooms if path.startswith(r + "/")]
        return max(fitting, key=len, default=None)

    def reach(self, room: str) -> set[str]:
        """The room, the rooms in its row, and theirs."""
        seen: set[str] = set()
        waiting = [room]
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                waiting += self.rooms.get(current, [])
        return seen

    def reach_of(self, source: Source, room: str) -> set[str]:
        reach = self.reach(room)
        if source.is_test:
            for extra in ["engine/sim", *self.test_rooms[room]]:
                reach |= self.reach(extra)
        return reach


def check_includes(rooms: Rooms, root: pathlib.Path, source: Source) -> Iterator[Finding]:
    room = rooms.room_of(source.path)
    if room is None:
        yield Finding(source.path, 1, "room", "this folder is no room: CMakeLists.txt has no firedrill_room for it")
        return
    reach = rooms.reach_of(source, room)
    for number, line in enumerate(source.code, start=1):
        match = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
        if not match or source.allowed(number):
            continue
        ours, library = match.groups()
        problem = (problem_of_ours(rooms, root, source, room, reach, ours) if ours
                   else problem_of_library(rooms, source, room, reach, library))
        if problem:
            yield Finding(source.path, number, *problem)


def problem_of_ours(rooms, root, source, room, reach, header) -> tuple[str, str] | None:
    if header == GENERATED:
        return None
    if not (root / header).is_file() or not header.startswith(CODE_FOLDERS):
        return "include_path", f'"{header}" is no header of ours; paths are written from the root of the tree'
    target = rooms.room_of(header)
    if target not in reach:
        may = ", ".join(sorted(reach - {room})) or "no other room"
        return "include_room", f"{room} may not include {target or header}; it may include {may}"
    if Source(root, header).is_test and not source.is_test:
        return "include_test", f"{header} is for tests"
    return None


def problem_of_library(rooms, source, room, reach, header) -> tuple[str, str] | None:
    engine = room == "faults" or room.startswith("engine/")
    if header.startswith(CODE_FOLDERS):
        return "include_path", f'our own headers are included as "{header}"'
    if header == "random":
        return "own_randomness", "the only random numbers are those of engine/base/rng.h"
    if header in STANDARD:
        if engine and not source.is_test and room != "engine/os":
            if header in THREADS:
                return "threads", f"<{header}>: rank code makes no thread and no lock, it asks engine/seam/host.h"
            if header in FILES and room != "engine/data":
                return "include_system", f"<{header}>: files and signals are reached through the seams"
        return None
    if SYSTEM.match(header):
        if engine and room != "engine/os" and not source.is_test:
            return "include_system", f"<{header}>: system calls of engine/ and faults/ are in engine/os alone"
        return None
    if header.startswith(COMPILER):
        return None
    if header.startswith(TESTING):
        return None if source.is_test else ("include_test", f"<{header}> is for tests")
    if header == "xxhash.h":
        return None if room == "engine/base" else ("include_library", "digests are made by engine/base/digest.h")
    if header.startswith(TORCH):
        if room in rooms.torch:
            return None
        return "include_torch", f"<{header}>: {room} never sees a tensor (TORCH is not in its row of CMakeLists.txt)"
    for library, prefixes in LIBRARIES.items():
        if header.startswith(prefixes) and prefixes:
            if any(library in rooms.links[r] for r in reach):
                return None
            return "include_library", f"<{header}>: neither {room} nor a room that it may include links {library}"
    return "include_library", f"<{header}> is of no library that is known here (ci/checks/rooms.py, LIBRARIES)"
