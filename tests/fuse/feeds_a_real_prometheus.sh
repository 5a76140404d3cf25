#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real Prometheus scrapes rmm-exporter, and /rmm/rmm.prom through node_exporter's textfile collector,
# while a trace is replayed: PromQL gives the figures of the files, joined with a series of DCGM; it
# loads the alert rules; and the queries of the Grafana dashboard return data. When the daemon hangs,
# rmm_up is 0, and node_exporter, which answers no more, goes on after it without a restart.
# shellcheck source=tests/fuse/common.sh
. "$(dirname "$0")/common.sh"
for program in prometheus prometheus-node-exporter promtool; do
    command -v "$program" >/dev/null || skip "no $program (Debian: prometheus, prometheus-node-exporter)"
done
source=${test_path%/tests/fuse/*}
monitoring=$source/fusefs/monitoring
replay=${RMMFS%/fusefs/*}/tools/replay/rmm-replay
[ -x "$replay" ] || skip "built without rmm-replay"
# shellcheck source=tests/fuse/exporter.sh
. "${test_path%/*}/exporter.sh"
[ -x "$exporter_program" ] || skip "built without rmm-exporter"

sed 's/interval: 1m/interval: 500ms/' "$monitoring/rmm.rules.yml" >"$work/rmm.rules.yml"

# A port that nobody has; both at once, so that they differ.
read -r exporter_port prometheus_port < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')

start_daemon
start_program constant
tell constant location 0 SIM-0 - 85899345920 "Simulated GPU 0"
tell constant alloc 0 12345
tell constant resource 1 pool pool 0 0
tell constant take 1 12345
tell constant hole 1 1000 600

# What an operator would do: a link in the folder of the textfile collector.
mkdir "$work/textfile"
ln -s "$mnt/rmm.prom" "$work/textfile/rmm.prom"
cat >"$work/textfile/dcgm.prom" <<'END'
# HELP DCGM_FI_DEV_FB_USED Frame buffer memory used (in MiB).
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="SIM-0",device="nvidia0",modelName="Simulated GPU 0"} 1024
END
prometheus-node-exporter --collector.disable-defaults --collector.textfile \
    --collector.textfile.directory="$work/textfile" \
    --web.listen-address="127.0.0.1:$exporter_port" >"$work/node_exporter.log" 2>&1 &
start_exporter --timeout 0.3
cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [rmm.rules.yml]
scrape_configs:
  - job_name: node
    static_configs: [{targets: ["127.0.0.1:$exporter_port"]}]
  - job_name: rmm
    static_configs: [{targets: ["127.0.0.1:$port"]}]
    metric_relabel_configs: # the other series are there by the textfile
      - {source_labels: [__name__], regex: rmm_up|rmm_daemon_segments, action: keep}
END
promtool check config "$work/prometheus.yml" >"$work/config" 2>&1 || fail "config: $(cat "$work/config")"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
    --web.listen-address="127.0.0.1:$prometheus_port" >"$work/prometheus.log" 2>&1 &

# A program with the real library, until all questions are answered.
RMM_DRIVER=sim "$replay" --resource pool --repeat 100000 --speed 20 \
    "$source/tests/data/resnet_train.csv.gz" >/dev/null 2>&1 &

cat >"$work/ask.py" <<'END'
import json
import sys
import time
import urllib.parse
import urllib.request

api = f'http://127.0.0.1:{sys.argv[1]}/api/v1/'
deadline = time.time() + 90


def ask(path, **parameters):
    with urllib.request.urlopen(api + path + '?' + urllib.parse.urlencode(parameters), timeout=10) as reply:
        return json.load(reply)['data']


def until(what, question, good):
    """The answer, as soon as it is good: Prometheus has its own time."""
    answer = None
    while time.time() < deadline:
        try:
            answer = question()
            if good(answer):
                return answer
        except OSError as error:
            answer = error
        time.sleep(0.3)
    sys.exit(f'{what}: {answer}')


def query(text, good=bool):
    return until(text, lambda: ask('query', query=text)['result'], good)


def value(text):
    return float(query(text)[0]['value'][1])


pid = sys.argv[2]
assert value(f'rmm_process_current_bytes{{pid="{pid}"}}') == 12345
assert value(f'rmm_resource_fragmentation_ratio{{pid="{pid}"}}') == 0.4
assert value('rmm_device_capacity_bytes{gpu="0"}') == 85899345920
# What DCGM sees of the GPU and the pools do not hold: contexts, and what else there is.
joined = query('DCGM_FI_DEV_FB_USED * 2^20'
               ' - on (UUID) group_left max by (UUID) (rmm_device_reserved_bytes)')
assert joined[0]['metric']['UUID'] == 'SIM-0', joined
query('node_textfile_scrape_error == 0')
query('rmm_up{job="rmm"} == 1')
query('rmm_daemon_segments{job="rmm"} == 2')
query('scrape_samples_scraped{job="rmm"} > 30')
query('count(rmm_process_up{comm="rmm-replay"} == 1) > 0')


def rules():
    return [rule for group in ask('rules')['groups'] for rule in group['rules']]


assert len(until('rules', rules, bool)) == 16, rules()
until('rules that were evaluated', rules, lambda rules: all(rule['health'] == 'ok' for rule in rules))

queries = 0
for panel in json.load(open(sys.argv[3]))['panels']:
    for target in panel['targets']:
        text = target['expr'].replace('$__rate_interval', '10s')
        for variable in ('cluster', 'node', 'user', 'job'):
            text = text.replace('$' + variable, '.*')
        text = text.replace(',owner!=""', '') # these programs may be in no group
        if 'ALERTS' not in text and 'growth44m' not in text: # nothing fires, nothing is so old
            query(text)
            queries += 1
assert queries > 15, queries
print(queries, 'queries of the dashboard return data')
END
python3 "$work/ask.py" "$prometheus_port" "${program_pid[constant]}" "$monitoring/rmm-dashboard.json" >"$work/answers" 2>&1 ||
    fail "$(tail -n 5 "$work/answers"; tail -n 3 "$work/prometheus.log" "$work/node_exporter.log")"
cat "$work/answers"

prometheus_has() { # QUERY: a question, for eventually
    curl -s -m 10 -G "http://127.0.0.1:$prometheus_port/api/v1/query" --data-urlencode "query=$1" | grep -q '"value"'
}
node_exporter_answers() { # STATUS
    [ "$(curl -s -m 5 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$exporter_port/metrics")" = "$1" ]
}
kill -STOP "$daemon"
eventually prometheus_has 'rmm_up{job="rmm"} == 0 and up{job="rmm"} == 1'
for _ in $(seq 45); do
    curl -s -m 0.1 -o /dev/null "http://127.0.0.1:$exporter_port/metrics" || true
done
eventually node_exporter_answers 503
kill -CONT "$daemon"
eventually node_exporter_answers 200
eventually prometheus_has 'rmm_up{job="rmm"} == 1'
stop_exporter
end_program constant
stop_daemon
