/**
 * A server with two extensions, Skills and MCP Apps, made with the packages that their authors publish:
 * `extensions.js legacy` and `extensions.js modern` on stdio, in one era only; `extensions.js modern http` over HTTP,
 * where it prints its URL as a line of JSON and ends when its stdin does.
 */
import { fileURLToPath } from 'node:url';
import { getUiCapability, registerAppResource, registerAppTool } from '@modelcontextprotocol/ext-apps/server';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { discoverSkills, registerSkillResources } from '@olaservo/ext-skills/server';
import { handleModern } from '../../matrix/servers/modern-http.js';
import { serveHttp } from '../../matrix/servers/serve-http.js';

const SKILLS = fileURLToPath(new URL('./skills', import.meta.url));
const CLOCK = 'ui://clock/view.html';
const VIEW_META = { ui: { csp: { connectDomains: ['https://time.example.com'] }, prefersBorder: true } };
const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

const skills = discoverSkills(SKILLS);

function createServer() {
  const server = new McpServer(
    { name: 'extensions', version: '1.0.0' },
    { capabilities: { resources: {}, extensions: { 'com.example/own': { deep: [1, { b: null }] } } } },
  );
  registerSkillResources(server, skills, SKILLS, { directoryRead: true, ttlMs: 60_000, cacheScope: 'public' });
  const clock = { description: 'The time, as a clock', _meta: { ui: { resourceUri: CLOCK } } };
  registerAppTool(server, 'clock', clock, () => ({
    content: [{ type: 'text', text: 'noon' }],
    structuredContent: { hour: 12 },
    _meta: { 'com.example/zone': 'UTC' },
  }));
  const wind = { description: 'For the clock alone', _meta: { ui: { resourceUri: CLOCK, visibility: ['app'] } } };
  registerAppTool(server, 'wind', wind, () => ({ content: [] }));
  registerAppResource(server, 'clock', CLOCK, { _meta: VIEW_META }, (uri) => ({
    contents: [
      { uri: uri.href, mimeType: 'text/html;profile=mcp-app', text: '<!doctype html><p>12:00', _meta: VIEW_META },
    ],
  }));
  // What a server looks at before it offers a view.
  server.registerTool('host', { description: 'What the host can show' }, ({ mcpReq }) => {
    const capabilities = mcpReq.envelope?.[CLIENT_CAPABILITIES] ?? server.server.getClientCapabilities();
    const { extensions = {} } = capabilities ?? {};
    return {
      content: [{ type: 'text', text: JSON.stringify({ ui: getUiCapability(capabilities) ?? null, extensions }) }],
    };
  });
  return server;
}

const [era, over = 'stdio'] = process.argv.slice(2);

if (era === 'legacy') {
  await createServer().connect(new StdioServerTransport());
} else if (over === 'stdio') {
  serveStdio(createServer, { legacy: 'reject' });
} else {
  const { fetch } = createMcpHandler(createServer, { legacy: 'reject' });
  const host = { note: () => {} };
  serveHttp({ path: '/mcp', place: '0', record: { entries: [] }, handle: handleModern(fetch, host) });
}
