# Settings shared by prepare.sh, train.sh and evaluate.sh; every one can be overridden from the environment, and so can
# those of ../wmt.sh (text, trees, GPUs) and ../common.sh. Numbers are those of Chen et al. (2018), Sec. 4, unless said
# otherwise.
: "${OUT:=outputs/wmt14}"           # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"
: "${MERGES:=50000}"                # joint BPE merges; the paper has the 50,000 most frequent words of each language
: "${VALID_SET:=wmt12}" "${TEST_SET:=wmt13 wmt14/full wmt15}" # newstest2012; 2013 (test), 2014 (test1), 2015 (test2)
: "${BATCH_SIZE:=80}"               # sentences an update, on all GPUs together
: "${LR:=1.0}"                      # as in Nematus: Adadelta finds the size of a step by itself
: "${MAX_UPDATE:=400000}"
: "${SAVE_UPDATES:=10000}"          # ours, as in Nematus
: "${BEAM:=12}" "${LENPEN:=1}"      # the length penalty is ours
: "${SHARDS:=8}"                    # 4.4 million sentences to parse
: "${MULTITASK=}"                   # that system is not in the paper
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../sdatt/training.sh"
