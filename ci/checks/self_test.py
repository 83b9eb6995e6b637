"""Shows that each rule of ci/check fires where it should and is silent where it should be: every case is a small tree
of its own with one thing in it, and the rules that must be broken by it."""
import pathlib
import tempfile
from typing import Callable

TABLE = """
firedrill_room(engine/base LINK fmt::fmt)
firedrill_room(engine/seam ROOMS engine/base)  # firedrill_room(not/a ROOMS room)
firedrill_room(engine/os   ROOMS engine/seam TORCH LINK Boost::headers)
firedrill_room(engine/sim  ROOMS engine/seam
               LINK Boost::context)
firedrill_room(engine/comm ROOMS engine/seam TEST_ROOMS engine/job)
firedrill_room(engine/job  ROOMS engine/base)
firedrill_room(faults      ROOMS engine/job)
firedrill_room(harness/world ROOMS engine/sim engine/os faults EXECUTABLE firedrill)
"""
HEADERS = {f"{room}/x.h": "// What x is for.\n#pragma once\n" for room in
           ("engine/base", "engine/seam", "engine/os", "engine/sim", "engine/comm", "engine/job", "faults")}
HEADERS["engine/sim/for_tests.h"] = "// A thing. For tests.\n#pragma once\n"
HEADERS["engine/seam/contract/x_contract.h"] = "// What holds for every x.\n#pragma once\n#include <gtest/gtest.h>\n"


def include(header: str) -> str:
    return f"#include {header}\n"


BODY = "  work();\n"
CASES: list[tuple[str, str, str, set[str]]] = [  # what it shows, file, its text, the rules that it breaks
    ("a room includes its own headers", "engine/sim/a.cpp", include('"engine/sim/x.h"'), set()),
    ("a room includes what its row's rooms may", "engine/sim/a.cpp", include('"engine/base/x.h"'), set()),
    ("sim never includes os", "engine/sim/a.cpp", include('"engine/os/x.h"'), {"include_room"}),
    ("a lower room never includes a higher one", "engine/base/a.h",
     "// A.\n#pragma once\n" + include('"engine/seam/x.h"'), {"include_room"}),
    ("the engine knows of no fault", "engine/comm/a.cpp", include('"faults/x.h"'), {"include_room"}),
    ("a row that goes over two lines counts whole", "engine/sim/a.cpp", include("<boost/context/fiber.hpp>"), set()),
    ("a test includes engine/sim", "engine/comm/a_test.cpp", include('"engine/sim/x.h"'), set()),
    ("a source does not", "engine/comm/a.cpp", include('"engine/sim/x.h"'), {"include_room"}),
    ("a test includes its TEST_ROOMS", "engine/comm/a_test.cpp", include('"engine/job/x.h"'), set()),
    ("a source does not include TEST_ROOMS", "engine/comm/a.cpp", include('"engine/job/x.h"'), {"include_room"}),
    ("not even a test of sim includes os", "engine/sim/a_test.cpp", include('"engine/os/x.h"'), {"include_room"}),
    ("a test includes a contract", "engine/sim/a_test.cpp", include('"engine/seam/contract/x_contract.h"'), set()),
    ("a source includes no contract", "engine/sim/a.cpp",
     include('"engine/seam/contract/x_contract.h"'), {"include_test"}),
    ("a header for tests includes what tests may", "engine/comm/a.h",
     "// A thing between threads.\n// For tests.\n#pragma once\n" + include('"engine/sim/x.h"'), set()),
    ("so does one that is called so", "engine/comm/test_a.h",
     "// A thing.\n#pragma once\n" + include('"engine/sim/x.h"'), set()),
    ("a source includes no header for tests", "engine/sim/a.cpp",
     include('"engine/sim/for_tests.h"'), {"include_test"}),
    ("a header that does not exist", "engine/sim/a.cpp", include('"engine/sim/y.h"'), {"include_path"}),
    ("a path from its own folder", "engine/sim/a.cpp", include('"x.h"'), {"include_path"}),
    ("our own header in angle brackets", "engine/sim/a.cpp", include("<engine/sim/x.h>"), {"include_path"}),
    ("code in a folder that is no room", "engine/new/a.cpp", "int x;\n", {"room"}),
    ("a standard header", "engine/base/a.cpp", include("<vector>") + include("<cstdint>"), set()),
    ("base may use xxhash", "engine/base/a.cpp", include("<xxhash.h>"), set()),
    ("others may not", "engine/seam/a.cpp", include("<xxhash.h>"), {"include_library"}),
    ("fmt is linked by base, so all have it", "engine/comm/a.cpp", include("<fmt/format.h>"), set()),
    ("a library that no row links", "engine/comm/a.cpp", include("<boost/asio/io_context.hpp>"), {"include_library"}),
    ("a library that is not known", "engine/comm/a.cpp", include("<zlib.h>"), {"include_library"}),
    ("LibTorch where the row says TORCH", "engine/os/a.cpp", include("<torch/torch.h>"), set()),
    ("LibTorch elsewhere", "engine/comm/a.cpp", include("<ATen/ATen.h>"), {"include_torch"}),
    ("TORCH is not inherited", "harness/world/a.cpp", include("<c10/util/Half.h>"), {"include_torch"}),
    ("os makes system calls", "engine/os/a.cpp", include("<unistd.h>") + include("<sys/stat.h>"), set()),
    ("no other room of the engine does", "engine/comm/a.cpp", include("<sys/mman.h>"), {"include_system"}),
    ("nor do faults", "faults/a.cpp", include("<fcntl.h>"), {"include_system"}),
    ("files go through the seam", "engine/comm/a.cpp", include("<fstream>"), {"include_system"}),
    ("a test may", "engine/comm/a_test.cpp", include("<unistd.h>") + include("<fstream>"), set()),
    ("the harness may", "harness/world/a.cpp", include("<unistd.h>"), set()),
    ("rank code makes no lock", "engine/comm/a.cpp", include("<mutex>"), {"threads"}),
    ("a rule can be lifted with a reason", "engine/comm/a.cpp",
     "#include <mutex>  // allowed: guards a table that no rank sees\n", set()),
    ("but not without one", "engine/comm/a.cpp", "#include <mutex>  // allowed:\n", {"threads"}),
    ("googletest in a test", "engine/comm/a_test.cpp", include("<gtest/gtest.h>"), set()),
    ("googletest in a source", "engine/comm/a.cpp", include("<gtest/gtest.h>"), {"include_test"}),
    ("an include in a comment", "engine/sim/a.cpp", '// #include "engine/os/x.h"\n', set()),
    ("a file of 400 lines", "faults/a.cpp", "int f();\n" * 400, set()),
    ("a file of 401", "faults/a.cpp", "int f();\n" * 401, {"file_length"}),
    ("a line of 120 columns", "faults/a.cpp", "// " + "x" * 117 + "\n", set()),
    ("a line of 121", "faults/a.cpp", "// " + "x" * 118 + "\n", {"line_length"}),
    ("a line of 121 in a script", "ci/a", "# " + "x" * 119 + "\n", {"line_length"}),
    ("a function of 70 lines", "faults/a.cpp", "int f() {\n" + BODY * 68 + "}\n", set()),
    ("a function of 71", "faults/a.cpp", "int f() {\n" + BODY * 69 + "}\n", {"function_length"}),
    ("a long member function", "faults/a.h",
     "// A.\n#pragma once\nnamespace a {\nclass B : C<int(int)> {\n  B(int x)\n      : x_(x) {\n" + BODY * 70 +
     "  }\n};\n}\n",
     {"function_length"}),
    ("a long class of short functions", "faults/a.h",
     "// A.\n#pragma once\nnamespace a {\nclass B {\n" + "  int f() { return g({1, 2}); }\n" * 90 + "};\n}\n", set()),
    ("a brace in a string", "faults/a.cpp",
     'int f() { g("{"); }\n' + "int x;\n" * 80 + 'int h() { g("}", \'{\'); }\n', set()),
    ("a long test", "faults/a_test.cpp", "TEST(A, B) {\n" + BODY * 70 + "}\n", {"function_length"}),
    ("a mark of unfinished work", "faults/a.cpp", "// TO" "DO: later\n", {"unfinished"}),
    ("another one", "ci/a", "# FIX" "ME\n", {"unfinished"}),
    ("a tab", "faults/a.cpp", "\tint x;\n", {"tab"}),
    ("a header without a purpose", "faults/a.h", "#pragma once\n", {"purpose"}),
    ("a header without pragma once", "faults/a.h", "// What a is for.\n", {"pragma_once"}),
    ("using namespace", "faults/a.cpp", "using namespace std;\n", {"using_namespace"}),
    ("using namespace of literals", "faults/a.cpp", "using namespace std::chrono_literals;\n", set()),
    ("an unordered map", "faults/a.cpp", "std::unordered_map<int, int> x;\n", {"unordered"}),
    ("an unordered map with its reason", "faults/a.cpp", "std::unordered_map<int, int> x;  // never walked\n", set()),
    ("rand()", "harness/world/a.cpp", "int x = std::rand();\n", {"own_randomness"}),
    ("random_device", "harness/world/a.cpp", "std::random_device x;\n", {"own_randomness"}),
    ("<random>", "harness/world/a.cpp", include("<random>"), {"own_randomness"}),
    ("LibTorch's own generator", "engine/os/a.cpp", "auto x = torch::randn({2});\n", {"own_randomness"}),
    ("LibTorch's own generator, in a test", "engine/os/a_test.cpp", "auto x = torch::randn({2});\n", set()),
    ("a name that ends in rand", "faults/a.cpp", "int x = operand(1) + r.rand_(2);\n", set()),
    ("system_clock", "harness/world/a.cpp", "auto x = std::chrono::system_clock::now();\n", {"wall_clock"}),
    ("system_clock in os", "engine/os/a.cpp", "auto x = std::chrono::system_clock::now();\n", set()),
    ("steady_clock in the engine", "engine/comm/a.cpp", "auto x = std::chrono::steady_clock::now();\n", {"wall_clock"}),
    ("steady_clock in the harness", "harness/world/a.cpp", "auto x = std::chrono::steady_clock::now();\n", set()),
    ("a clock in a comment", "engine/comm/a.cpp", "// system_clock::now() would differ\n", set()),
    ("a file in camel case", "faults/BadName.cpp", "int x;\n", {"file_name"}),
]


def run(check_tree: Callable) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (claim, path, text, rules) in enumerate(CASES):
            root = pathlib.Path(folder) / str(number)
            for name, content in {**HEADERS, "CMakeLists.txt": TABLE, path: text}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content, encoding="utf-8")
            findings = check_tree(root)
            found = {f.rule for f in findings}
            if found != rules or any(f.path != path for f in findings):
                failed += 1
                print(f"FAILED: {claim}: expected {sorted(rules)}, got {[str(f) for f in findings]}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0
