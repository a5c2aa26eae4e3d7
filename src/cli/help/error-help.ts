/**
 * Explains an error by its section of the reference. The build puts the reference into the program as text, which is
 * loaded only for this.
 */
import reference from '../../../docs/reference/errors.md';
import type { ErrorCode } from '../../errors.ts';
import { wrap } from './text-table.ts';

/** Returns the lines of the section: its title, what the error is seen as, and the explanation. */
export function explainError(code: ErrorCode, width: number): readonly string[] {
  const heading = `\n### ${code}\n`;
  const [, rest = ''] = reference.split(heading);
  const [section = ''] = rest.split(/^#{2,3} /m);
  const blocks = section
    .trim()
    .split('\n\n')
    .map((block) => renderBlock(block, width));
  return [code, ...blocks.flatMap((lines) => ['', ...lines])];
}

/** Renders a paragraph, or a list whose items may go over several lines. */
function renderBlock(block: string, width: number): readonly string[] {
  return block.split(/\n(?=- )/).flatMap((part) => {
    const text = toPlainText(part.replaceAll(/\n\s*/g, ' '));
    if (!text.startsWith('- ')) return wrap(text, width);
    return wrap(text.slice(2), width - 2).map((line, index) => (index === 0 ? `- ${line}` : `  ${line}`));
  });
}

/** Leaves out the marks of code and emphasis, and the targets of links, which lead to other files. */
function toPlainText(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll(/`([^`]+)`|\*\*([^*]+)\*\*/g, '$1$2');
}
