// Light or dark: as the system has it, unless the reader chose.
import { effect, signal } from '@preact/signals';

export type Theme = 'light' | 'dark';
const STORED = 'reseal.theme';
const stored = localStorage.getItem(STORED);
const prefersDark = matchMedia('(prefers-color-scheme: dark)').matches;

export const theme = signal<Theme>(stored === 'dark' || stored === 'light' ? stored : prefersDark ? 'dark' : 'light');

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(STORED, chosen);
  theme.value = chosen;
}

effect(() => {
  document.documentElement.style.colorScheme = theme.value;
});
