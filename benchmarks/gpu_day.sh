#!/usr/bin/env bash
# A quarter of an hour on a lent GPU, what matters most first. Without a GPU it tries itself, on a pretended one.
#     benchmarks/gpu_day.sh wheels FOLDER         beforehand: what Python 3.12 with torch lacks, as wheels (45 MB)
#     benchmarks/gpu_day.sh FOLDER OUT DATA...    there: tests, benchmark, a training on each data directory
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$1" = wheels ]; then
    names='antlr4.*|bitarray|colorama|execnet|hydra-core|hypothesis|iniconfig|joblib|lxml|numpy|omegaconf|packaging|pluggy'
    names+='|portalocker|pygments|pytest|pytest-xdist|pyyaml|regex|sacrebleu|sacremoses|sortedcontainers|subword-nmt'
    cat requirements*.txt | sed -nE "s/ *\\\\$//; /^($names|tabulate|tqdm|typing-extensions|ve-fairseq)==/p" > "$2.txt"
    exec python3.12 -m pip wheel --no-deps --wheel-dir "$2" --requirement "$2.txt"
fi
python3 -m pip install --quiet --no-deps --no-index "$1"/*.whl
export PYTHONPATH=$PWD OUT=$2
mkdir -p "$OUT"
run() { "${@:2}" 2>&1 | tee "$OUT/$1.txt" || true; }
python3 -c 'import torch; raise SystemExit(not torch.cuda.is_available())' && way=(--fp16) quick=() || way=(--cpu) quick=(--quick)
run tests python3 -m pytest tests/integration/test_pretend_gpu.py
run gpu python3 benchmarks/gpu.py --json "$OUT/gpu.json" "${quick[@]}"
for data in "${@:3}"; do
    run "$(basename "$data")" timeout "${SECONDS_EACH:-180}" python3 -m fairseq_cli.train "$data" --task syntax_translation \
        --user-dir fairseq_syntax --arch "${ARCH:-pascal_transformer_iwslt_de_en}" --optimizer adam --lr 5e-4 --max-tokens 8192 \
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --save-dir "$OUT/$(basename "$data")" "${way[@]}"
done
