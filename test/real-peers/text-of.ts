/** The text of a tool result's content, its items joined by line feeds. */
export function textOf(result: object): string {
  const { content } = result as { readonly content?: unknown };
  const items: readonly { readonly text?: string }[] = Array.isArray(content) ? content : [];
  return items.map(({ text }) => text ?? '').join('\n');
}
