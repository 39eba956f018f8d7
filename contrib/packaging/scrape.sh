#!/bin/sh
# The time of a scrape of a large switch, and what it does to frames: 1,000 bridges with 10,000
# ports, of which two forward 100,000 frames a second, once in the kernel tier and once on the
# thread that also answers for the counts of all ports. As root:
#
#     WEIR=target/release/weir contrib/packaging/scrape.sh
#
# RATE (100kpps), BRIDGES (1000), SECONDS_EACH (5) and TURNS (3) change the run. Runs with a scrape
# a second and without take turns.
RATE=${RATE:-100kpps} BRIDGES=${BRIDGES:-1000} SECONDS_EACH=${SECONDS_EACH:-5} TURNS=${TURNS:-3}
# shellcheck source=contrib/packaging/traffic.sh
. "$(dirname "$0")/traffic.sh"

# The first bridge has the two devices, and all have ten ports.
awk -v n="$BRIDGES" 'BEGIN {
    print "metrics = \"127.0.0.1:9437\""
    for (bridge = 0; bridge < n; bridge++) {
        printf "[[bridge]]\nname = \"br%d\"\nfail-mode = \"secure\"\nport = [", bridge
        for (port = 1; port <= 10; port++) {
            device = "null:p" bridge "-" port
            if (bridge == 0 && port <= 2) device = port == 1 ? "af_packet:va" : "af_packet:vb"
            printf "\"%d=%s\", ", port, device
        }
        print "]"
    }
}' >/run/switch.toml
stream 1

# A scrape a second, until the file /run/over is there: the median and the longest.
scrape() {
    python3 -c '
import os, statistics, time, urllib.request
took = []
while not os.path.exists("/run/over"):
    begin = time.monotonic()
    with urllib.request.urlopen("http://127.0.0.1:9437/metrics", timeout=60) as answer:
        text = answer.read()
    took.append((time.monotonic() - begin) * 1e3)
    time.sleep(max(0, 1 - took[-1] / 1e3))
ports = text.count(b"\nweir_port_up{")
print(f"{len(took)} scrapes of {ports} ports, {len(text) / 1e6:.1f} MB each:"
      f" p50 {statistics.median(took):.0f} ms, max {max(took):.0f} ms")'
}

for caches in kernel,frame,key frame,key; do
    begin --config /run/switch.toml --caches "$caches"
    "$WEIR" ctl --control /run/control --bridge br0 add-flow in_port=1,actions=output:2
    send 2 >/run/sent
    case $caches in kernel*) by=kernel ;; *) by=thread ;; esac
    for turn in $(seq "$TURNS"); do
        send "$SECONDS_EACH" | report "$by $turn unscraped" "no scrape"
        rm -f /run/over
        scrape >/run/scraped &
        scraping=$!
        send "$SECONDS_EACH" >/run/sent
        : >/run/over
        wait $scraping
        report "$by $turn scraped" "$(cat /run/scraped)" </run/sent
    done
    end TERM
done
