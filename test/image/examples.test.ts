/** The examples for containers, as they are in the repository but for the images, which are built here, and the server's download. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { buildImage, EVERYTHING, engine, findEngine, hasProgram, runProgram } from '../support/container.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const found = findEngine();
/** Has Node and nothing else of ours. */
const APP_IMAGE = process.env.NODE_IMAGE ?? 'localhost/mcp-portage-node:22';

async function folder(t: ExecutionContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'portage-example-'));
  t.teardown(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** An example with images of this machine. Fails where it does not say what is to be replaced. */
async function localExample(
  t: ExecutionContext,
  name: string,
  replaced: Readonly<Record<string, string>>,
): Promise<string> {
  let text = await readFile(join(ROOT, 'examples', name), 'utf8');
  for (const [written, local] of Object.entries(replaced)) {
    t.true(text.includes(written), `${name} says ${written}`);
    text = text.replaceAll(written, local);
  }
  return text;
}

const canPlay = found?.program === 'podman';
const inPod = canPlay ? test.serial : test.skip;

inPod(
  `the sidecar for Kubernetes serves the other container of its pod${canPlay ? '' : ' (skipped: podman, which plays such files, is not here)'}`,
  async (t) => {
    if (found === undefined) return t.fail();
    t.timeout(20 * 60_000);
    const image = await buildImage(found, 'slim');
    const pod = await localExample(t, 'kubernetes-sidecar.yaml', {
      'ghcr.io/mcp-portage/mcp-portage:latest': image,
      'node:22-slim': APP_IMAGE,
      "'npx', '-y', '@modelcontextprotocol/server-everything'": `'node', '${EVERYTHING}'`,
      '  volumes:\n': `  volumes:\n    - name: servers\n      hostPath:\n        path: ${ROOT}node_modules\n`,
      '      volumeMounts:\n':
        '      volumeMounts:\n        - name: servers\n          mountPath: /srv/node_modules\n          readOnly: true\n',
    });
    const file = join(await folder(t), 'pod.yaml');
    await writeFile(file, pod);
    t.teardown(() => engine(found, 'pod', 'rm', '--force', '--time', '1', 'app-with-tools').catch(() => undefined));
    await engine(found, 'kube', 'play', file);
    await waitFor(async () => /^200$/m.test(await engine(found, 'logs', 'app-with-tools-app')), {
      message: 'the application to reach the sidecar',
    });
    await t.notThrowsAsync(engine(found, 'exec', 'app-with-tools-mcp-portage', 'node', '/app/scripts/healthcheck.js'));
  },
);

const composes = found !== undefined && hasProgram(found.program === 'podman' ? 'podman-compose' : 'docker-compose');
const inComposition = composes ? test.serial : test.skip;

inComposition(
  `the composition serves its other service${composes ? '' : ' (skipped: no program for compositions is here)'}`,
  async (t) => {
    if (found === undefined) return t.fail();
    t.timeout(20 * 60_000);
    const image = await buildImage(found, 'slim');
    const text = await localExample(t, 'compose.yaml', {
      'build: ..': `image: ${image}`,
      'node:22-slim': APP_IMAGE,
      "'npx', '-y', '@modelcontextprotocol/server-filesystem'": `'node', '/srv/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js'`,
      '- ./data:/data:ro': `- ./data:/data:ro\n      - ${ROOT}node_modules:/srv/node_modules:ro`,
      // One that asks once, and is started before the other one is ready where the program does not wait for that.
      'console.log(r.status))': 'console.log(r.status), () => process.exit(1))',
      '    depends_on:': '    restart: on-failure\n    depends_on:',
    });
    const cwd = await folder(t);
    await mkdir(join(cwd, 'data'));
    await writeFile(join(cwd, 'compose.yaml'), text);
    const compose = (...args: readonly string[]) => runProgram(found, `${found.program}-compose`, args, cwd);
    t.teardown(() => compose('down', '--timeout', '1').catch(() => undefined));
    await compose('up', '--detach');
    const id = (await engine(found, 'ps', '--all', '--quiet', '--filter', 'name=app')).split('\n')[0] ?? '';
    await waitFor(async () => /^200$/m.test(await engine(found, 'logs', id)), {
      message: 'the other service to get an answer',
    });
  },
);
