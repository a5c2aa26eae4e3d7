/** The tools of published servers, as an aggregate would index them. */
import { readFileSync } from 'node:fs';
import { type IndexedTool, readIndexedTool } from '../../../src/aggregate/search/indexed-tool.ts';
import { ToolIndex } from '../../../src/aggregate/search/tool-index.ts';

interface PublishedTool {
  readonly server: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: object;
}

const FOLDER = new URL('../../fixtures/published-tools/', import.meta.url);

/** Package, version and number of tools, by the prefix of the server. */
export const SERVERS: Readonly<Record<string, { readonly package: string; readonly tools: number }>> = JSON.parse(
  readFileSync(new URL('servers.json', FOLDER), 'utf8'),
);

/** As `tools/list` of each server says it, without the types of parameters. */
export const PUBLISHED_TOOLS: readonly PublishedTool[] = readFileSync(new URL('tools.ndjson', FOLDER), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));

export function publishedTools(server: string): readonly IndexedTool[] {
  return PUBLISHED_TOOLS.filter((tool) => tool.server === server).map((tool) =>
    readIndexedTool(server, `${server}__${tool.name}`, { ...tool }),
  );
}

export function publishedIndex(): ToolIndex {
  const index = new ToolIndex();
  for (const server of Object.keys(SERVERS)) index.replace(server, publishedTools(server));
  return index;
}
