import { readFileSync } from 'node:fs';

/** The path is valid from src/ and from dist/, since both are directly below the package's root. */
const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The version in package.json. */
export const VERSION: string =
  typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';

/** The `clientInfo` for servers if the bridge itself is the client. */
export const CLIENT_INFO = { name: 'mcp-portage', version: VERSION };
