import { execFile, spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { parse, parseAllDocuments } from 'yaml';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import { startBridge } from '../support/bridge.ts';
import { EVERYTHING, NODE } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { blocksOf, documentAt, ROOT } from './documents.ts';

const path = 'docs/guide/connect.md';
const text = documentAt(path);
const blocks = blocksOf({ path, text });
const example = (name: string): Promise<string> => readFile(new URL(`examples/${name}`, ROOT), 'utf8');

const around = {
  cwd: '/',
  env: {},
  platform: 'linux',
  stderrIsTerminal: false,
  readFile: () => ({ text: '', isOpenToAll: false }),
} as const;

/** As they stand in YAML, which is JSON but for the quotes. */
function configOf(words: string, env: Readonly<Record<string, string>> = {}, readFile = around.readFile) {
  const commandLine = parseCommandLine(JSON.parse(words.replaceAll("'", '"')));
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  return parseConfig(commandLine, { ...around, env, readFile });
}

test('the client configurations of the guide are JSON and the same as in examples/clients', async (t) => {
  const shown = blocks
    .filter(({ language }) => language === 'json')
    .map((block) => JSON.stringify(JSON.parse(block.text)));
  const names = await readdir(new URL('examples/clients/', ROOT));
  const files = await Promise.all(names.map((name) => example(`clients/${name}`)));
  t.deepEqual(shown.sort(), files.map((file) => JSON.stringify(JSON.parse(file))).sort());
});

test('the modern client of the guide is the one in examples, and calls a tool of a legacy server', async (t) => {
  const [program] = blocks.filter(({ language }) => language === 'js');
  t.is(program?.text, await example('modern-client.js'));
  const [, output = ''] = /It prints `(.*)`/.exec(text) ?? [];
  const bridge = await startBridge(['--', NODE, EVERYTHING]);
  t.teardown(() => bridge.stop());
  const file = fileURLToPath(new URL('examples/modern-client.js', ROOT));
  const { stdout } = await promisify(execFile)(process.execPath, [file, bridge.url.href]);
  t.is(stdout.trim(), output);
});

test('the settings in the compose example are accepted', async (t) => {
  const compose = await example('compose.yaml');
  const env = Object.fromEntries(
    [...compose.matchAll(/(MCP_PORTAGE_[A-Z_]+): '?([^'\n]+)'?/g)].map(([, name = '', value = '']) => [name, value]),
  );
  const [, command = ''] = /command: (\['--'.*\])/.exec(compose) ?? [];
  const { config, warnings } = configOf(command, env);
  t.like(config.listener, { access: { allowHosts: ['tools'] } });
  t.deepEqual(warnings, []);
});

test('the command in the Kubernetes example is accepted, and listens for its pod only', async (t) => {
  const [, words = ''] = /args: (\[.*\])/.exec(await example('kubernetes-sidecar.yaml')) ?? [];
  const { config, warnings } = configOf(words, { MCP_PORTAGE_HOST: '0.0.0.0', MCP_PORTAGE_PORT: '8000' });
  t.like(config.listener, { addresses: [{ kind: 'tcp', host: '127.0.0.1', port: 8000 }] });
  t.deepEqual(warnings, []);
});

/** The health check of the Kubernetes example is that of the image. */
test('the Kubernetes example runs the health check of the image', async (t) => {
  const [, check = ''] = /CMD (\[.*healthcheck.*\])/.exec(await readFile(new URL('Dockerfile', ROOT), 'utf8')) ?? [];
  t.regex(check, /healthcheck/);
  const pod = (await example('kubernetes-sidecar.yaml')).replaceAll("'", '"');
  t.true(pod.includes(`command: ${check}`));
});

test('the Deployment of replicas runs a bridge that takes its options, and its parts name each other', async (t) => {
  const text = await example('kubernetes-replicas.yaml');
  const [deployment, service, ...more] = parseAllDocuments(text, { strict: true }).map((document) => {
    t.deepEqual(document.errors, []);
    return document.toJS();
  });
  t.deepEqual(more, []);
  t.like(deployment, { apiVersion: 'apps/v1', kind: 'Deployment' });
  t.like(service, { apiVersion: 'v1', kind: 'Service' });
  const { selector, template } = deployment.spec;
  t.deepEqual(template.metadata.labels, selector.matchLabels);
  t.deepEqual(service.spec.selector, selector.matchLabels);

  const [container] = template.spec.containers;
  const [{ containerPort }] = container.ports;
  t.is(service.spec.ports[0].targetPort, containerPort);
  for (const probe of ['readinessProbe', 'livenessProbe']) t.is(container[probe].httpGet.port, containerPort, probe);
  const volumes = template.spec.volumes.map(({ name }: { readonly name: string }) => name);
  t.deepEqual(
    container.volumeMounts.map(({ name }: { readonly name: string }) => name),
    volumes,
  );

  const words = [...container.command, ...container.args].map((word) => word.replaceAll('$(POD_IP)', '10.0.0.5'));
  t.deepEqual(words.slice(0, 3), ['npx', '-y', 'mcp-portage']);
  const names = container.env.map(({ name }: { readonly name: string }) => name);
  t.deepEqual(names, ['POD_IP', 'MCP_PORTAGE_STORE']);
  const readFile = () => ({ text: 'x'.repeat(40), isOpenToAll: false });
  const env = { MCP_PORTAGE_STORE: 'rediss://redis.example:6379' };
  const { config, warnings } = configOf(JSON.stringify(words.slice(3)), env, readFile);
  t.like(config.listener, { addresses: [{ kind: 'tcp', host: '0.0.0.0', port: containerPort }] });
  // In front of it is something that ends TLS.
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /without TLS/);
  const grace = /--shutdown-grace (\d+)s/.exec(words.join(' '))?.[1];
  t.true(template.spec.terminationGracePeriodSeconds > Number(grace));
});

test('the configuration of Envoy cuts no stream, repeats nothing that was sent, and its parts name each other', async (t) => {
  const text = await example('proxies/envoy-replicas.yaml');
  const { listeners, clusters } = parse(text, { strict: true }).static_resources;
  const manager = listeners[0].filter_chains[0].filters[0].typed_config;
  const { route } = manager.route_config.virtual_hosts[0].routes[0];
  t.is(route.timeout, '0s');
  t.is(route.retry_policy.retry_on, 'connect-failure,refused-stream');
  // Streams say something every 15 s.
  t.true(Number.parseInt(manager.stream_idle_timeout, 10) > 15);
  t.is(route.cluster, clusters[0].name);
  t.is(clusters[0].load_assignment.cluster_name, clusters[0].name);
  t.is(clusters[0].health_checks[0].http_health_check.path, '/readyz');
});

test('the command in the systemd example is accepted', async (t) => {
  const unit = await example('systemd/mcp-portage.service');
  const [, line = ''] = /^ExecStart=\/usr\/local\/bin\/mcp-portage (.*)$/m.exec(unit) ?? [];
  t.is(parseCommandLine(line.split(' ')).kind, 'bridge');
});

const testWithSystemd = spawnSync('systemd-analyze', ['--version']).status === 0 ? test : test.skip;

testWithSystemd('systemd finds nothing to say about the systemd example', async (t) => {
  // The program is not installed here.
  const unit = (await example('systemd/mcp-portage.service')).replace('/usr/local/bin/mcp-portage', '/bin/true');
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp-portage.service', unit);
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
  t.notRegex(stderr, /mcp-portage\.service/);
  t.is(status, 0, stderr);
});
