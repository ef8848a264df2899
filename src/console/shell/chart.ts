// A chart of one or two series over time: SVG that follows the theme, with its numbers as a sentence and as a table for those
// who do not see it. Shapes tell series apart, not colour alone: the second is dashed.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { tags, type View } from './html.ts';
import { language, languageTag, texts } from './language.ts';
import { moment, parseTime } from './time.ts';

const {
  button,
  div,
  figcaption,
  figure,
  g,
  line,
  p,
  path,
  rect,
  small,
  span,
  svg,
  table,
  tbody,
  td,
  th,
  thead,
  title,
  tr,
} = tags;

const t = texts({
  en: {
    table: 'Show the numbers',
    chart: 'Hide the numbers',
    time: 'Time',
    none: 'no data',
    all: '{value} in all',
    last: '{name}: {value} at the end, {most} at most',
    until: 'from {from} to {to}',
  },
  zh: {
    table: '显示数值',
    chart: '隐藏数值',
    time: '时间',
    none: '无数据',
    all: '共 {value}',
    last: '{name}：末值 {value}，最大 {most}',
    until: '{from} 至 {to}',
  },
});

export interface Series {
  readonly name: string;
  /** One per time; null where nothing is known. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly name: string;
  readonly times: readonly string[];
  readonly series: readonly Series[];
  /** Bars for what is counted per interval, lines for what is measured. */
  readonly as: 'bars' | 'lines';
  readonly unit?: string;
}

const [WIDTH, HEIGHT] = [600, 140];
/** Rows of the table. */
const MAX_ROWS = 60;

export const chart = (props: ChartProps): View => h(Chart, props);

function Chart({ name, times, series, as, unit = '' }: ChartProps): View {
  const [hasTable, setTable] = useState(false);
  const highest = Math.max(0, ...series.flatMap(({ values }) => values.filter((value) => value !== null)));
  const top = roundTop(highest);
  const number = (value: number | null | undefined): string =>
    value == null ? t('none') : `${value.toLocaleString(languageTag())}${unit}`;
  const [first, last] = [times[0], times.at(-1)];
  const sentence = [
    first && last ? t('until', { from: clock(first), to: clock(last) }) : '',
    ...series.map(({ name: of, values }) =>
      t('last', { name: of, value: number(values.at(-1)), most: number(mostOf(values)) }),
    ),
  ].join('; ');
  const step = WIDTH / Math.max(1, times.length);
  const hint = (index: number) =>
    `${clock(times[index] ?? '')}  ${series.map(({ name: of, values }) => `${of} ${number(values[index])}`).join(', ')}`;
  return figure(
    { class: 'chart' },
    figcaption(
      span({ class: 'name' }, name),
      series.map((one, index) =>
        span(
          { key: one.name, class: `legend series-${index}` },
          series.length > 1 && swatch(index),
          ' ',
          one.name,
          ' ',
          as === 'bars' ? t('all', { value: number(sumOf(one.values)) }) : number(one.values.at(-1)),
        ),
      ),
    ),
    div(
      { class: 'plot' },
      div({ class: 'scale', 'aria-hidden': 'true' }, small(number(top)), small(number(0))),
      svg(
        {
          viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
          preserveAspectRatio: 'none',
          role: 'img',
          'aria-label': `${name}: ${sentence}`,
        },
        [0, 0.5, 1].map((part) =>
          line({ key: part, class: 'grid', x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part }),
        ),
        series.map(({ values }, index) =>
          as === 'bars'
            ? g({ key: index, class: `bars series-${index}` }, bars(values, top, step))
            : path({ key: index, class: `line series-${index}`, d: outline(values, top, step) }),
        ),
        // Over each point, so that the pointer finds its numbers.
        times.map((time, index) =>
          rect({ key: time, class: 'point', x: index * step, y: 0, width: step, height: HEIGHT }, title(hint(index))),
        ),
      ),
    ),
    div({ class: 'ends', 'aria-hidden': 'true' }, small(first ? clock(first) : ''), small(last ? clock(last) : '')),
    p(
      button(
        { type: 'button', class: 'small', 'aria-expanded': hasTable, onClick: () => setTable(!hasTable) },
        hasTable ? t('chart') : t('table'),
        span({ class: 'heard' }, `: ${name}`),
      ),
    ),
    hasTable && numbers({ times, series, number }),
  );
}

const swatch = (index: number): View =>
  svg(
    { class: 'swatch', viewBox: '0 0 24 8', 'aria-hidden': 'true' },
    line({ class: `line series-${index}`, x1: 0, x2: 24, y1: 4, y2: 4 }),
  );

/** The newest first, which is what one looks for. */
function numbers({
  times,
  series,
  number,
}: Pick<ChartProps, 'times' | 'series'> & { readonly number: (value: number | null | undefined) => string }): View {
  const rows = times.map((time, index) => ({ time, index })).slice(-MAX_ROWS);
  return div(
    { class: 'table', tabIndex: 0 },
    table(
      thead(tr(th({ scope: 'col' }, t('time')), ...series.map(({ name }) => th({ scope: 'col', key: name }, name)))),
      tbody(
        rows
          .reverse()
          .map(({ time, index }) =>
            tr(
              { key: time },
              td(moment(time)),
              ...series.map(({ name, values }) => td({ key: name }, number(values[index]))),
            ),
          ),
      ),
    ),
  );
}

const clock = (time: string): string =>
  language.value && parseTime(time).toLocaleTimeString(languageTag(), { hour: '2-digit', minute: '2-digit' });

const sumOf = (values: readonly (number | null)[]): number =>
  values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
const mostOf = (values: readonly (number | null)[]): number | null =>
  values.reduce((most, value) => (value === null || (most !== null && most >= value) ? most : value), null);

/** The next of 1, 2, 5, 10, 20, … and at least 4, so that one event does not fill the chart. */
function roundTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return Math.max(4, [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= value) ?? value);
}

const bars = (values: readonly (number | null)[], top: number, step: number): (View | null)[] =>
  values.map((value, index) => {
    if (!value) return null;
    const height = (value / top) * HEIGHT;
    return rect({ key: index, x: index * step + step * 0.1, y: HEIGHT - height, width: step * 0.8, height });
  });

/** A gap where nothing is known. */
function outline(values: readonly (number | null)[], top: number, step: number): string {
  let isDown = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isDown = false;
        return '';
      }
      const [x, y] = [(index + 0.5) * step, HEIGHT - (value / top) * HEIGHT];
      // A single point is a short line, or it would not be seen.
      const command = isDown
        ? `L${x.toFixed(1)} ${y.toFixed(1)}`
        : `M${(x - step / 2).toFixed(1)} ${y.toFixed(1)}H${x.toFixed(1)}`;
      isDown = true;
      return command;
    })
    .join('');
}
