#!/usr/bin/env bash
# Build the core with AddressSanitizer and UndefinedBehaviorSanitizer and run tests with it.
#
#     tools/sanitize.sh                  all tests of the compiled core and of what calls it
#     tools/sanitize.sh tests/core -x    these, with options of pytest
#
# PYTHON names the interpreter, with the development requirements installed (.venv/bin/python by default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}
build=build/sanitize
[ $# -gt 0 ] || set -- tests/core tests/planning tests/projection tests/learners tests/test_*.py

cmake=$(command -v cmake || echo "$(dirname "$python")/cmake")
"$cmake" -S . -B "$build" -DPython_EXECUTABLE="$(command -v "$python")" -DCMAKE_BUILD_TYPE=Debug \
    -DTIGHTROPE_SANITIZE=address,undefined
"$cmake" --build "$build" --parallel "$(getconf _NPROCESSORS_ONLN)"
# The package with this core, apart from the one that is installed.
rm -rf "$build/package"
mkdir -p "$build/package"
cp -r src/tightrope "$build/package/"
rm -f "$build"/package/tightrope/core/_*.so
touch "$build/package/_editable_skbc_tightrope.py" # or an editable installation would come first: this is what it imports
"$cmake" --install "$build" --prefix "$build/package"

compiler=${CXX:-c++}
# Exceptions need the C++ library to be there when the sanitizer starts. Python itself leaks on purpose.
export LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libstdc++.so)"
rm -f "$build"/report.*
export ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:log_path=$PWD/$build/report"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:log_path=$PWD/$build/report"
export PYTHONMALLOC=malloc
export PYTHONPATH="$PWD/$build/package${PYTHONPATH:+:$PYTHONPATH}"
"$python" -c "import tightrope.core; assert 'sanitize' in tightrope.core.__file__, tightrope.core.__file__"
status=0
"$python" -m pytest -q -p no:cacheprovider --capture=sys "$@" || status=$? # reports of sanitizers are seen
unset LD_PRELOAD
! cat "$build"/report.* 2> /dev/null || status=1
exit "$status"
