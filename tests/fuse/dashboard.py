#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard for Grafana: its structure, figures of a cluster, and its queries on them.

    dashboard.py check DASHBOARD           the structure
    dashboard.py data NODES PROGRAMS END   the figures of an hour, as OpenMetrics
    dashboard.py rules RULES NAME...       the recording rules alone, of these names
    dashboard.py ask DASHBOARD URL END     each query of a panel and of a variable, as Grafana asks

END is a time in seconds since 1970."""
import json
import re
import sys
import time
import urllib.parse
import urllib.request

GIB = 1 << 30
STEP = 240  # s between two samples: Prometheus takes one for 300 s
SPAN = 4800
VARIABLES = ('cluster', 'node', 'user', 'job')


# --- structure -------------------------------------------------------------------------------

def targets_of(dashboard):
    for panel in dashboard['panels']:
        for target in panel['targets']:
            yield panel, target


def check(path):
    with open(path, encoding='utf-8') as file:
        dashboard = json.load(file)
    variables = {each['name']: each for each in dashboard['templating']['list']}
    assert set(variables) == {'datasource', *VARIABLES}, variables.keys()
    expressions = [target['expr'] for _, target in targets_of(dashboard)]
    for name in VARIABLES:
        each = variables[name]
        assert each['multi'] and each['includeAll'], name
        assert each['allValue'] == '.*', f'{name}: All must match a label that is absent'
        assert any(f'=~"${name}"' in text for text in expressions), f'{name} is not used'
    panels = dashboard['panels']
    assert len({panel['id'] for panel in panels}) == len(panels)
    places = set()
    for panel in panels:
        assert panel['targets'] and panel['title'], panel
        assert panel['datasource']['uid'] == '${datasource}', panel['title']
        at = panel['gridPos']
        assert at['x'] + at['w'] <= 24, panel['title']
        cells = {(x, y) for x in range(at['x'], at['x'] + at['w'])
                 for y in range(at['y'], at['y'] + at['h'])}
        assert not cells & places, f'{panel["title"]} lies over another panel'
        places |= cells
    for panel, target in targets_of(dashboard):
        text, title = target['expr'], panel['title']
        selectors = re.findall(r'\b((?:rmm[_:]|ALERTS)[\w:]*)(\{[^}]*\})?', text)
        assert selectors, title
        for name, labels in selectors:
            assert 'cluster=~"$cluster",instance=~"$node"' in labels, f'{title}: {name}'
        for labels in re.findall(r'\b(?:by|on) \(([^)]*)\)', text):
            assert labels.startswith('cluster, instance'), f'{title}: {labels}'
        if panel['type'] == 'timeseries':
            assert '{{instance}}' in target['legendFormat'], f'{title}: which node?'


# --- figures ---------------------------------------------------------------------------------

class Cluster:
    """Nodes of 8 GPUs; programs of Slurm jobs, pods and none, some of users without a name."""

    def __init__(self, nodes, programs, end):
        self.nodes, self.programs = nodes, programs
        self.times = [end - SPAN + i * STEP for i in range(SPAN // STEP + 1)]

    def family(self, name, kind, rows):
        """rows: labels and a function of the number of the sample."""
        print(f'# TYPE {name} {kind}')
        suffix = '_total' if kind == 'counter' else ''
        for labels, value in rows:
            head = f'{name}{suffix}{{cluster="c1",job="rmm",{labels}}} '
            print('\n'.join(f'{head}{value(i)} {at}' for i, at in enumerate(self.times)))

    def of_nodes(self, value):
        for node in range(self.nodes):
            yield f'instance="node{node}:19400"', lambda i, node=node: value(node, i)

    def of_gpus(self, value):
        for node in range(self.nodes):
            for gpu in range(8):
                yield (f'instance="node{node}:19400",gpu="{gpu}",UUID="GPU-{node}-{gpu}"',
                       lambda i, n=node * 8 + gpu: value(n, i))

    def of_programs(self, labels, value):
        for node in range(self.nodes):
            for program in range(self.programs):
                text = (f'instance="node{node}:19400",pid="{1000 + program}",'
                        f'comm="train{program % 7}"{labels(program)}')
                yield text, lambda i, program=program: value(program, i)

    def write(self):
        def gpu(program):
            return f',gpu="{program % 8}",UUID="GPU-{program % 8}"'

        def pool(program):
            return gpu(program) + ',resource="2.pool",type="pool"'

        def info(program):
            user = f',user="user{program % 20}"' if program % 20 else ''
            owner = (f',slurm_job="{program // 10}"', f',pod="pod{program // 10}",namespace="n"',
                     ',unit="a.service"')[program % 3]
            return f',uid="{1000 + program % 20}"{user}{owner}'
        # At the end nothing changes: rules are evaluated some time after the samples.
        level = len(self.times) - 6
        self.family('rmm_daemon_segments', 'gauge', self.of_nodes(lambda n, i: self.programs))
        self.family('rmm_daemon_segments_rejected', 'counter', self.of_nodes(lambda n, i: i // 5))
        self.family('rmm_up', 'gauge', self.of_nodes(lambda n, i: int(n != 3)))
        for name, value in (('capacity', lambda n, i: 80 * GIB),
                            ('reserved', lambda n, i: 60 * GIB),
                            ('current', lambda n, i: (30 + n % 20) * GIB),
                            ('cached', lambda n, i: 9 * GIB)):
            self.family(f'rmm_device_{name}_bytes', 'gauge', self.of_gpus(value))
        self.family('rmm_device_fragmentation_ratio', 'gauge',
                    self.of_gpus(lambda n, i: n % 10 / 10))
        for name, each in (('allocations', 100), ('allocated_bytes', GIB), ('oom', 1),
                           ('invalid_free', 0)):
            self.family(f'rmm_device_{name}', 'counter',
                        self.of_gpus(lambda n, i, each=each: i * each))
        self.family('rmm_process_up', 'gauge', self.of_programs(lambda p: '', lambda p, i: 1))
        self.family('rmm_process_info', 'gauge', self.of_programs(info, lambda p, i: 1))
        self.family('rmm_process_current_bytes', 'gauge', self.of_programs(
            gpu, lambda p, i: (p % 9 + 1) * GIB + (min(i, level) << 24 if p % 50 == 0 else 0)))
        self.family('rmm_resource_fragmentation_ratio', 'gauge',
                    self.of_programs(pool, lambda p, i: p % 10 / 10))
        self.family('rmm_resource_growth', 'counter',
                    self.of_programs(pool, lambda p, i: i * (p % 5)))
        self.family('rmm_job_peak_bytes', 'gauge', (
            (f'instance="node{node}:19400",kind="slurm_job",name="{job}",uid="1"',
             lambda i: 7 * GIB)
            for node in range(self.nodes) for job in range(self.programs // 10)))
        self.family('ALERTS', 'gauge', (
            (f'instance="node1:19400",alertname="{name}",alertstate="firing"', lambda i: 1)
            for name in ('RmmLeak', 'RmmNearLimit')))
        print('# EOF')


# --- recording rules -------------------------------------------------------------------------

def print_rules(path, names):
    """In groups of one rule: promtool evaluates each by itself."""
    import yaml  # python3-yaml
    with open(path, encoding='utf-8') as file:
        groups = yaml.safe_load(file)['groups']
    rules = [rule for group in groups for rule in group['rules'] if rule.get('record') in names]
    assert len(rules) == len(names), names
    json.dump({'groups': [{'name': rule['record'], 'interval': f'{STEP}s', 'rules': [rule]}
                          for rule in rules]}, sys.stdout)


# --- queries ---------------------------------------------------------------------------------

def api(url, path, **parameters):
    address = f'{url}/api/v1/{path}?' + urllib.parse.urlencode(parameters, doseq=True)
    with urllib.request.urlopen(address, timeout=120) as reply:
        return json.load(reply)['data']


def with_values(text, **values):
    text = text.replace('$__rate_interval', f'{4 * STEP}s')
    for name in VARIABLES:
        text = text.replace('$' + name, values.get(name, '.*'))
    assert '$' not in text.replace('"$1"', ''), text
    return text


def ask(path, url, end):
    with open(path, encoding='utf-8') as file:
        dashboard = json.load(file)
    longest, began = (0.0, ''), time.monotonic()
    one = {'node': 'node1:19400', 'user': 'user1', 'job': 'slurm .*|pod .*', 'cluster': 'c1'}
    for panel, target in targets_of(dashboard):
        for values in ({}, one):
            text, before = with_values(target['expr'], **values), time.monotonic()
            if panel['type'] == 'stat':
                found = api(url, 'query', query=text, time=end)['result']
            else: # an hour; a panel without an interval has a step for each 15 s
                step = {'1m': 60, None: 15}[panel.get('interval')]
                found = api(url, 'query_range', query=text, start=end - 3600, end=end,
                            step=step)['result']
            took = time.monotonic() - before
            longest = max(longest, (took, panel['title']))
            assert found, f'{panel["title"]}: no data: {text}'
            if panel['type'] != 'stat':
                assert all('instance' in each['metric'] for each in found), panel['title']
            print(f'{took * 1000:6.0f} ms {len(found):4} series  {panel["title"]}')
    for each in dashboard['templating']['list']:
        if each['type'] == 'query':
            definition = re.fullmatch(r'label_values\((.*), (\w+)\)', each['definition'])
            selector, label = definition.groups()
            found = api(url, f'label/{label}/values', **{'match[]': with_values(selector)},
                        start=end - 3600, end=end)
            assert found, each['name']
            print(f'          {len(found):4} values of ${each["name"]}: {found[0]} to {found[-1]}')
    print(f'all queries twice in {time.monotonic() - began:.1f} s, '
          f'the longest {longest[0]:.2f} s: {longest[1]}')


def main():
    command, *arguments = sys.argv[1:]
    if command == 'check':
        check(*arguments)
    elif command == 'data':
        Cluster(*map(int, arguments)).write()
    elif command == 'rules':
        print_rules(arguments[0], arguments[1:])
    else:
        ask(arguments[0], arguments[1], int(arguments[2]))


main()
