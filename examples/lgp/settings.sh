# Every setting can be overridden from the environment, and so can those of
# `settle` in training.sh.
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
: "${OUT:=outputs/lgp}"             # everything is written below, text and models to a folder for each PAIRS
: "${SOURCE:=en}" "${TARGET:=ja}"
: "${PAIRS:=10000}"                 # the first pairs of the training text, of 50000
: "${SIZE:=cpu}"                    # cpu: fits two cores; paper: the paper's loss and more epochs, for a GPU
: "${LOWERCASE=1}"                  # the text is lower-cased, so the parser has to read the treebank so, too
SPLITS=(valid test)
: "${DATA:=}"                       # folder of a local copy: train, dev and test .en and .ja, plain or .gz, and trees, if any:
                                    # train.en.conllu.gz …
: "${UD:=}"                         # folder of a local copy of UD English-EWT
WORK="$OUT/$PAIRS"

case "$SIZE" in
cpu)
    : "${CRITERION:=cross_entropy}" # faster, and learns more in few epochs, with so few words
    : "${MAX_EPOCH:=20}"            # half epochs
    : "${PRIOR:=off}"               # it lowers BLEU here
    : "${PARSE_DEVICE:=cpu}"
    DEVICE=(--cpu)
    ;;
paper)
    DEVICE=()
    ;;
*) stop "SIZE=$SIZE: choose cpu or paper" ;;
esac
settle
if [[ -z "${PARSES:-}" ]]; then # given, if there are any in DATA
    PARSES=own
    [[ -z "$DATA" ]] || ! existing "$DATA/train.$SOURCE.conllu"{,.gz} &> /dev/null || PARSES=given
fi
TANAKA=https://raw.githubusercontent.com/odashi/small_parallel_enja/master
FULL="$OUT/full" # everything there is, of which PAIRS are taken

# How a split is called there: name_there SPLIT
name_there() {
    [[ "$1" == valid ]] && echo dev || echo "$1"
}

# How many sentences of it are taken: how_many SPLIT
how_many() {
    [[ "$1" == train ]] && echo "$PAIRS" || echo all
}

text() {
    local split language name
    run mkdir -p "$FULL"
    for split in train "${SPLITS[@]}"; do
        for language in "$SOURCE" "$TARGET"; do
            name="$(name_there "$split").$language"
            fetch "$FULL/$name" "$name" "$TANAKA/$name"
            first_lines "$(how_many "$split")" "$FULL/$name" "$TEXT/$split.$language"
        done
    done
}

given_trees() {
    local split name
    for split in train "${SPLITS[@]}"; do
        name="$(name_there "$split").$SOURCE.conllu"
        fetch "$FULL/$name" "$name"
        first_trees "$(how_many "$split")" "$FULL/$name" "$TEXT/$split.$SOURCE.conllu"
    done
}
