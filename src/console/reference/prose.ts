// Texts of the document: paragraphs, with what stands in `backticks` set as code, and names that may break.
import type { ComponentChildren } from 'preact';
import { tags, type View } from '../shell/html.ts';

const { code, p, wbr } = tags;

export const prose = (text = ''): View[] =>
  text
    .split(/\n{2,}/)
    .filter((paragraph) => paragraph !== '')
    .map((paragraph) => p(...marked(paragraph)));

export const marked = (text: string): ComponentChildren[] =>
  text.split('`').map((part, index) => (index % 2 === 1 ? code(part) : part));

/** Some names are longer than a phone is wide: they may break, but after an underscore or before a slash. */
export const breakable = (name: string): ComponentChildren[] =>
  name.split(/(?<=[_.])|(?=\/)/).map((part) => [part, wbr()]);

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
