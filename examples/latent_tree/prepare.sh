#!/usr/bin/env bash
# Get the untokenised text of Multi30k (task 1, German-English), cut it into characters, binarize.
#   bash examples/latent_tree/prepare.sh                         downloads the text
#   DATA=/path/to/multi30k bash examples/latent_tree/prepare.sh  takes a local copy
source "$(dirname "$0")/settings.sh"
: "${DATA:=}"
URL=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw
text="$OUT/text" characters="$OUT/characters"
run mkdir -p "$text" "$characters"

get() { # split, name there
    local language goal file
    for language in "$SOURCE" "$TARGET"; do
        goal="$text/$1.$language"
        if [[ -z "$DATA" ]]; then
            file="$goal.gz"
            unless_there "$file" download "$file" "$URL/$2.$language.gz"
        else
            file="$DATA/$2.$language"
            [[ -f "$file" ]] || file="$file.gz"
            there "$file" "DATA=$DATA must hold train, val, test_2016_flickr and test_2017_flickr in $SOURCE and $TARGET"
        fi
        unless_there "$goal" run_to "$goal" gzip -dcf "$file"
        run fairseq-syntax-characters --input "$goal" --output "$characters/$1.$language" --overwrite
    done
}

get train train
get valid val
get test test_2016_flickr
get test1 test_2017_flickr

run rm -rf "$DATA_BIN"
# no symbols that are made up: the model would save probability for them
run fairseq-preprocess --source-lang "$SOURCE" --target-lang "$TARGET" --workers "$WORKERS" --padding-factor 1 \
    --trainpref "$characters/train" --validpref "$characters/valid" --testpref "$characters/test,$characters/test1" \
    --destdir "$DATA_BIN"
