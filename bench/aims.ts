// Measurements as ratios with their aims, printed as a Markdown table that can be pasted.
type Unit = 'µs' | 'ms' | 'KiB' | 'per second' | '';

export interface Ratio {
  readonly value: number;
  /** What the value is divided by; a count stands for itself. */
  readonly by?: number;
  readonly unit: Unit;
}

export interface Row<M> {
  /** One sentence: what is measured, divided by what. */
  readonly about: string;
  /** Rows without an aim are printed to be read beside the others. */
  readonly aim?: { readonly atMost: number } | { readonly atLeast: number };
  /** Undefined where it cannot be measured. */
  ratio(measured: M): Ratio | undefined;
}

export function tableOf<M>(rows: readonly Row<M>[], measured: M): string[] {
  return ['| | measured | bound | ratio | aim | verdict |', '|---|--:|--:|--:|--:|---|', ...rows.map(line)];

  function line(row: Row<M>): string {
    const ratio = row.ratio(measured);
    const cells = ratio ? [...amounts(ratio), aimOf(row), verdict(row, ratio)] : ['–', '', '–', aimOf(row), '–'];
    return `| ${[row.about, ...cells].join(' | ')} |`;
  }
}

const quotient = ({ value, by = 1 }: Ratio): number => value / by;

function amounts(ratio: Ratio): string[] {
  const amount = (number: number) => `${short(number)} ${ratio.unit}`.trim();
  return [amount(ratio.value), ratio.by === undefined ? '' : amount(ratio.by), quotient(ratio).toFixed(2)];
}

const short = (number: number): string => number.toFixed(number < 100 ? 1 : 0);

function aimOf<M>({ aim }: Row<M>): string {
  if (!aim) return '';
  return 'atMost' in aim ? `≤ ${aim.atMost}` : `≥ ${aim.atLeast}`;
}

function verdict<M>({ aim }: Row<M>, ratio: Ratio): string {
  if (!aim) return '';
  const isMet = 'atMost' in aim ? quotient(ratio) <= aim.atMost : quotient(ratio) >= aim.atLeast;
  return isMet ? 'met' : 'missed';
}
