import { VERSION } from '../version.ts';

/** What servers are told they talk to where it is not a client that says so itself. */
export const CLIENT_INFO = { name: 'mcp-portage', version: VERSION };
