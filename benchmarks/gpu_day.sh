#!/usr/bin/env bash
# A quarter of an hour on a lent GPU, what matters most first. Without a GPU it tries itself, on a pretended one.
#     benchmarks/gpu_day.sh wheels FOLDER        beforehand: what Python 3.12 with torch lacks, as wheels (47 MB)
#     benchmarks/gpu_day.sh FOLDER OUT DATA...   there: tests, benchmark, three minutes of training on each data directory
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$1" = wheels ]; then
    names='antlr4.*|bitarray|colorama|execnet|hydra-core|hypothesis|iniconfig|joblib|langcodes|lxml|numpy|omegaconf|packaging'
    names+='|pluggy|portalocker|pygments|pytest|pytest-xdist|pyyaml|regex|sacrebleu|sacremoses|sortedcontainers|subword-nmt'
    sed -nE "s/ *\\\\$//; /^($names|tabulate|tqdm|typing-extensions|ve-fairseq)==/p" requirements*.txt > "$2.txt"
    exec python3.12 -m pip wheel --no-deps --wheel-dir "$2" --requirement "$2.txt"
fi
python3 -m pip install --quiet --no-deps --no-index "$1"/*.whl
export OUT=$2 PYTHONPATH=$PWD:$2/unused
# a criterion and a task of fairseq that nothing here uses import what is too large to carry
mkdir -p "$OUT"/unused/{sklearn,scipy}
tee "$OUT"/unused/{sklearn/__init__,sklearn/metrics,scipy/__init__,scipy/stats}.py <<< 'def __getattr__(name): pass'
run() { "${@:2}" 2>&1 | tee "$OUT/$1.txt" || true; }
python3 -c 'import torch; torch.cuda.current_device()' && way=(--fp16) quick=() || way=(--cpu) quick=(--quick)
run tests python3 -m pytest tests/integration/test_pretend_gpu.py
run gpu python3 benchmarks/gpu.py --json "$OUT/gpu.json" "${quick[@]}"
train=(--task syntax_translation --user-dir fairseq_syntax --arch "${ARCH:-pascal_transformer_iwslt_de_en}" --max-tokens 8192
    --optimizer adam --lr 5e-4 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --no-epoch-checkpoints "${way[@]}")
for data in "${@:3}"; do
    name=$(basename "$data")
    run "$name" timeout "${SECONDS_EACH:-180}" python3 -m fairseq_cli.train "$data" "${train[@]}" --save-dir "$OUT/$name"
done
