/** Reads names and texts of tools. */
import type { Parsed } from '../../options/value-type.ts';

/** The name of a tool that the server uses, and a text for it. */
export type TextOfTool = readonly [name: string, text: string];

/** [spec 2025-11-25 server/tools#tool-names] Hosts refuse other names. */
export const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** Parses the name that clients are shown for a tool. */
export function parseToolName(text: string): Parsed<string> {
  if (TOOL_NAME.test(text)) return { ok: true, value: text };
  return { ok: false, expected: 'the name of a tool, 1 to 128 letters, digits, "_", "-" and "."' };
}

/** Parses `OLD=NEW`. A new name has no "=", so the last one separates the names. */
export function parseRenaming(text: string): Parsed<TextOfTool> {
  const at = text.lastIndexOf('=');
  return checkRenaming(text.slice(0, Math.max(0, at)), text.slice(at + 1));
}

export function checkRenaming(own: string, shown: string): Parsed<TextOfTool> {
  if (own !== '' && parseToolName(shown).ok) return { ok: true, value: [own, shown] };
  return { ok: false, expected: 'OLD=NEW, where NEW has 1 to 128 letters, digits, "_", "-" and "."' };
}

/** Parses `NAME=TEXT`. The first "=" separates them. */
export function parseToolText(text: string): Parsed<TextOfTool> {
  const [, name = '', content = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  return checkToolText(name, content);
}

export function checkToolText(name: string, content: string): Parsed<TextOfTool> {
  if (name !== '') return { ok: true, value: [name, content] };
  return { ok: false, expected: 'NAME=TEXT, the name that the server gives a tool and its description' };
}
