// Parses the text format of Prometheus strictly, and applies the rules of `promtool check metrics`: a metric that promtool
// would reject or complain about throws.
import assert from 'node:assert/strict';

export interface Metric {
  readonly type: string;
  readonly samples: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const HEAD = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;
const VALUE = /^(NaN|[+-]Inf|[+-]?\d+(\.\d+)?(e[+-]?\d+)?)$/i;
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

export function parseExposition(text: string): Map<string, Metric> {
  assert.ok(text.endsWith('\n'), 'the last line has no line break');
  const metrics = new Map<string, Metric>();
  const helped = new Set<string>();
  let current = '';
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, keyword, of = '', rest = ''] = HEAD.exec(line) ?? [];
    if (keyword === 'HELP') {
      assert.ok(!helped.has(of), `a second HELP of ${of}`);
      helped.add(of);
    } else if (keyword === 'TYPE') {
      assert.ok(!metrics.has(of) && rest in SUFFIXES, `TYPE ${of} ${rest}`);
      metrics.set(of, { type: rest, samples: [] });
      current = of;
    } else {
      const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      const metric = metrics.get(current);
      assert.ok(metric && VALUE.test(value), `not a sample: ${line}`);
      assert.ok(
        SUFFIXES[metric.type]?.some((suffix) => current + suffix === name),
        `${name} is not of ${current}`,
      );
      metric.samples.push({ name, labels: labelsIn(labels), value: Number(value.replace('Inf', 'Infinity')) });
    }
  }
  for (const [name, metric] of metrics) lint(name, metric, helped);
  return metrics;
}

function labelsIn(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ''; ) {
    const [whole, name, value] = LABEL.exec(rest) ?? [];
    assert.ok(whole !== undefined && name !== undefined && value !== undefined && !(name in labels), `labels: ${text}`);
    labels[name] = value;
    rest = rest.slice(whole.length);
  }
  return labels;
}

const ABBREVIATED = ['s', 'ms', 'us', 'ns', 'sec', 'b', 'kb', 'mb', 'gb', 'tb', 'pb', 'm', 'h', 'd'];
const NOT_BASE =
  /_(milliseconds|microseconds|nanoseconds|minutes|hours|days|weeks|kilobytes|megabytes|gigabytes|bits|percent)(_|$)/;

/** The rules of promlint. */
function lint(name: string, { type, samples }: Metric, helped: ReadonlySet<string>): void {
  assert.ok(helped.has(name), `${name} has no help text`);
  assert.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`);
  if (type === 'gauge' || type === 'counter') assert.doesNotMatch(name, /_(count|sum|bucket)$/);
  for (const word of ['counter', 'gauge', 'histogram', 'summary']) assert.ok(!name.includes(`_${word}`), name);
  assert.doesNotMatch(name, /:|[a-z][A-Z]/);
  assert.doesNotMatch(name, NOT_BASE);
  for (const unit of ABBREVIATED) assert.ok(!`${name}_`.includes(`_${unit}_`), `${name} abbreviates a unit`);
  const seen = new Set<string>();
  for (const { name: sample, labels } of samples) {
    for (const label of Object.keys(labels)) {
      assert.doesNotMatch(label, /[a-z][A-Z]/);
      assert.ok(label !== 'le' || sample.endsWith('_bucket'), `${sample} has the label le`);
      assert.ok(label !== 'quantile' || type === 'summary', `${sample} has the label quantile`);
    }
    const key = sample + JSON.stringify(Object.entries(labels).sort());
    assert.ok(!seen.has(key), `${key} occurs twice`);
    seen.add(key);
  }
}
