#!/bin/sh
# Installs stock TensorFlow in build/venv, for the tests and benchmarks that compare with it. If that fails (no network, no
# wheel for this machine), prints why, and those tests are skipped. RN_STOCK=no skips them too.
cd "$(dirname "$0")/.." || exit 1
venv=build/venv
packages="tensorflow-cpu==2.21.0 tf_keras==2.21.0 tensorboard pytest ruff mypy"
[ "$RN_STOCK" = no ] && exit 0
[ -e $venv/complete ] && exit 0
# An environment made by hand counts as complete if it has the package that is installed last.
[ -x $venv/bin/mypy ] && [ -e "$(echo $venv/lib/python3*/site-packages/tf_keras/__init__.py)" ] && exit 0
echo "installing stock TensorFlow into $venv, for the tests that compare with it (RN_STOCK=no leaves them out)"
mkdir -p build
if python3 -m venv $venv >build/venv.log 2>&1 &&
   $venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 $packages >>build/venv.log 2>&1; then
  touch $venv/complete
else
  rm -rf $venv
  echo "stock TensorFlow could not be installed (build/venv.log says why): tests that compare with it are left out" >&2
fi
