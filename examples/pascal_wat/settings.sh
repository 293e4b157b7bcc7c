# Settings shared by prepare.sh, train.sh and evaluate.sh; every one can be overridden from the environment, and so can
# those of ../wmt.sh and ../common.sh. Numbers are those of Bugliarello & Okazaki (2020) for WAT English-Japanese.
: "${OUT:=outputs/pascal_wat}"      # everything is written below
: "${SOURCE:=en}" "${TARGET:=ja}"
: "${VALID_SET:=dev}" "${TEST_SET:=test}" # as the corpus calls them
: "${MERGES:=32000}"                # joint BPE merges
: "${MAX_WORDS:=1000}" "${MAX_RATIO:=1000}" # the authors drop no pair; fairseq takes 1024 tokens
: "${TOKENIZE_ja:=mecab -Owakati}"  # the words of CaboCha, which the authors took
: "${SEGMENT_JA:=kytea -notags}"    # for scores: the words of the evaluation at WAT
: "${LR:=7e-4 transformer=1e-3 lisa=1e-3}"
: "${DROPOUT:=0.1}" "${BETA2:=0.997 multitask=0.98}" "${MAX_UPDATE:=100000}"
: "${PASCAL_HEADS:=7 0 0 0 0 0}" "${PARENT_IGNORING:=0.0}"
: "${SHARDS:=8}"                    # 3 million sentences to parse
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"
