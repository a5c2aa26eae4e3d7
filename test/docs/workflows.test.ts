/** The workflows run only where the repository is hosted, so what can be known about them before is checked here. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'yaml';
import { z } from 'zod';
import { splitWords } from './documents.ts';

const ROOT = new URL('../../', import.meta.url);
const FOLDER = '.github/workflows/';

const Permissions = z.record(z.string(), z.enum(['read', 'write', 'none']));
const Step = z.strictObject({
  id: z.string().optional(),
  if: z.string().optional(),
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  env: z.record(z.string(), z.string()).optional(),
});
const Job = z.strictObject({
  'runs-on': z.string(),
  'timeout-minutes': z.number().positive(),
  if: z.string().optional(),
  needs: z.union([z.string(), z.array(z.string())]).optional(),
  strategy: z
    .strictObject({
      'fail-fast': z.boolean().optional(),
      matrix: z.record(z.string(), z.array(z.union([z.string(), z.number(), z.record(z.string(), z.string())]))),
    })
    .optional(),
  permissions: Permissions.optional(),
  environment: z.strictObject({ name: z.string(), url: z.string() }).optional(),
  env: z.record(z.string(), z.string()).optional(),
  defaults: z.strictObject({ run: z.strictObject({ shell: z.string() }) }).optional(),
  steps: z.array(Step).min(1),
});
const Workflow = z.strictObject({
  name: z.string(),
  on: z.record(z.string(), z.unknown()),
  permissions: Permissions,
  concurrency: z.strictObject({ group: z.string(), 'cancel-in-progress': z.boolean() }).optional(),
  jobs: z.record(z.string(), Job),
});
type Job = z.infer<typeof Job>;

/** The jobs that may write, and what: each publishes to one place. */
const MAY_WRITE: Readonly<Record<string, readonly string[]>> = {
  'site.yml publish': ['pages', 'id-token'],
  'publish.yml npm': ['id-token'],
  'publish.yml image': ['packages', 'id-token', 'attestations'],
  'publish.yml release': ['contents', 'id-token', 'attestations'],
};

/**
 * The labels of the machines that GitHub offers for the systems we publish for. A label that is retired makes its job wait
 * for ever: https://github.com/actions/runner-images lists them.
 */
const RUNNERS = ['ubuntu-latest', 'ubuntu-24.04-arm', 'macos-latest', 'macos-15-intel', 'windows-latest'];

const files = readdirSync(new URL(FOLDER, ROOT));

interface NamedJob {
  readonly name: string;
  readonly job: Job;
  readonly siblings: Readonly<Record<string, Job>>;
}

async function readJobs(t: ExecutionContext): Promise<readonly NamedJob[]> {
  const jobs = await Promise.all(
    files.map(async (file): Promise<readonly NamedJob[]> => {
      const text = await readFile(new URL(FOLDER + file, ROOT), 'utf8');
      const { jobs: siblings, permissions } = Workflow.parse(parse(text));
      t.deepEqual(permissions, { contents: 'read' }, `${file} lets its jobs read the repository and nothing else`);
      return Object.entries(siblings).map(([id, job]) => ({ name: `${file} ${id}`, job, siblings }));
    }),
  );
  return jobs.flat();
}

test('the workflows have the members that GitHub knows, and may only read where they do not publish', async (t) => {
  const jobs = await readJobs(t);
  t.true(jobs.length >= 8);
  for (const { name, job } of jobs) {
    const written = Object.entries(job.permissions ?? {}).flatMap(([scope, right]) => (right === 'write' ? scope : []));
    t.deepEqual(written, [...(MAY_WRITE[name] ?? [])], name);
  }
});

test('every action is named by its commit, with the version beside it for readers and for the update bot', async (t) => {
  const versions = new Map<string, string>();
  for (const file of files) {
    const text = await readFile(new URL(FOLDER + file, ROOT), 'utf8');
    const uses = text.split('\n').filter((line) => /\buses:/.test(line));
    t.true(uses.length > 0, file);
    for (const line of uses) {
      const [, action = '', version = ''] = /uses: ([\w-]+\/[\w-]+@[0-9a-f]{40}) # (v\d+\.\d+\.\d+)$/.exec(line) ?? [];
      t.not(action, '', line);
      const [repository = ''] = action.split('@');
      t.is(versions.get(repository) ?? `${action} ${version}`, `${action} ${version}`, 'one version everywhere');
      versions.set(repository, `${action} ${version}`);
    }
  }
});

test('the workflows run scripts, tests and files that exist', async (t) => {
  const { scripts } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'));
  const commands = (await readJobs(t)).flatMap(({ job }) => job.steps.flatMap(({ run }) => run?.split('\n') ?? []));
  const called = commands.flatMap((command) => /^npm (?:run )?([\w:]+)/.exec(command)?.[1] ?? []);
  t.true(called.length > 10);
  for (const name of called) {
    t.true(['ci', 'audit', 'pkg', 'publish'].includes(name) || Object.hasOwn(scripts, name), name);
  }
  const paths = commands.flatMap((command) => command.match(/\b(?:src|test|scripts)\/[\w./-]+/g) ?? []);
  t.true(paths.length > 5);
  for (const path of paths) t.true(existsSync(new URL(path, ROOT)), path);
});

test('no value from outside becomes part of a shell command', async (t) => {
  for (const { name, job } of await readJobs(t)) {
    for (const { run = '' } of job.steps) t.false(run.includes('${{'), `${name}: ${run}`);
  }
});

test('a checkout leaves no credentials behind for what is installed afterward', async (t) => {
  for (const { name, job } of await readJobs(t)) {
    for (const step of job.steps) {
      if (step.uses?.startsWith('actions/checkout@')) t.is(step.with?.['persist-credentials'], false, name);
    }
  }
});

test('what a job refers to is there: the jobs it waits for, its matrix, and the steps before', async (t) => {
  for (const { name, job, siblings } of await readJobs(t)) {
    for (const needed of [job.needs ?? []].flat()) t.true(Object.hasOwn(siblings, needed), `${name} needs ${needed}`);
    const known = new Set(
      Object.entries(job.strategy?.matrix ?? {}).flatMap(([key, values]) =>
        key === 'include' ? values.flatMap((value) => Object.keys(value)) : key,
      ),
    );
    for (const [, key = ''] of JSON.stringify(job).matchAll(/\$\{\{[^}]*\bmatrix\.(\w+)/g)) {
      t.true(known.has(key), `${name} has no matrix.${key}`);
    }
    for (const [at, step] of job.steps.entries()) {
      const before = job.steps.slice(0, at).map(({ id }) => id);
      for (const [, id] of JSON.stringify(step).matchAll(/\bsteps\.(\w+)\.outputs\./g)) {
        t.true(before.includes(id), `${name} uses the outputs of ${id}`);
      }
    }
  }
});

test('the jobs run on machines that GitHub offers, and on every Node since the oldest one we support', async (t) => {
  const { engines } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'));
  const oldest = Number(/^>=(\d+)/.exec(engines.node)?.[1]);
  const tried = new Set<number>();
  for (const { name, job } of await readJobs(t)) {
    const { os = [], include = [], node = [] } = job.strategy?.matrix ?? {};
    const machines = [
      ...os,
      ...include.flatMap((entry) => (typeof entry === 'object' ? (entry.os ?? []) : [])),
      ...(job['runs-on'].startsWith('${{') ? [] : [job['runs-on']]),
    ];
    t.true(machines.length > 0, name);
    for (const machine of machines) t.true(RUNNERS.includes(String(machine)), `${name} runs on ${machine}`);
    for (const { with: given } of job.steps) {
      const version = given?.['node-version'];
      if (typeof version === 'number') t.true(version >= oldest, name);
    }
    if (name === 'ci.yml check') for (const version of node) tried.add(Number(version));
  }
  t.deepEqual([...tried], [oldest, oldest + 2, oldest + 4]);
});

test('the update bot looks after everything that has versions: packages, actions and images', async (t) => {
  const { version, updates } = parse(await readFile(new URL('.github/dependabot.yml', ROOT), 'utf8'));
  t.is(version, 2);
  const looked = updates.map((update: { readonly 'package-ecosystem': string }) => update['package-ecosystem']);
  t.deepEqual(looked, ['npm', 'github-actions', 'docker']);
  for (const { directory, directories = [directory] } of updates) {
    for (const folder of directories) t.true(existsSync(new URL(`.${folder}`, ROOT)), folder);
  }
});

test('a release has the images for both processors with provenance and a list of contents, and an executable for each system', async (t) => {
  const jobs = await readJobs(t);
  const withOf = (job: string, action: string) =>
    jobs.find(({ name }) => name === `publish.yml ${job}`)?.job.steps.find(({ uses }) => uses?.startsWith(`${action}@`))
      ?.with;
  t.like(withOf('image', 'docker/build-push-action'), {
    platforms: 'linux/amd64,linux/arm64',
    provenance: 'mode=max',
    sbom: true,
    push: true,
  });
  const names = jobs
    .find(({ name }) => name === 'publish.yml executable')
    ?.job.strategy?.matrix.include?.map((entry) => (typeof entry === 'object' ? entry.name : entry));
  t.deepEqual(names, ['linux-x64', 'linux-arm64', 'macos-arm64', 'macos-x64', 'windows-x64']);
  for (const job of ['image', 'release']) t.truthy(withOf(job, 'actions/attest-build-provenance'), job);
});

test('the published package names the repository that publishes it, its page and where to report bugs', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'package-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'package.json');
  const ours = await readFile(new URL('package.json', ROOT), 'utf8');
  await writeFile(file, ours);

  const steps = (await readJobs(t)).find(({ name }) => name === 'publish.yml npm')?.job.steps ?? [];
  const [setting, publishing] = ['npm pkg set ', 'npm publish'].map((command) =>
    steps.findIndex(({ run }) => run?.startsWith(command)),
  );
  t.true(Number(setting) >= 0 && Number(setting) < Number(publishing), 'set before the package is packed');
  const { run = '', env = {} } = steps[Number(setting)] ?? {};
  t.deepEqual(env, { REPOSITORY: `\${{ github.server_url }}/\${{ github.repository }}` });
  const args = splitWords(run.replaceAll('$REPOSITORY', 'https://example.com/owner/name')).slice(1);
  await promisify(execFile)('npm', args, { cwd: folder, shell: process.platform === 'win32' });

  const address = 'https://example.com/owner/name';
  t.deepEqual(JSON.parse(await readFile(file, 'utf8')), {
    ...JSON.parse(ours),
    repository: { type: 'git', url: `git+${address}.git` },
    homepage: `${address}#readme`,
    bugs: { url: `${address}/issues` },
  });
});

test('the site is built for every pull request, and published from the main branch alone', async (t) => {
  const { on } = Workflow.parse(parse(await readFile(new URL(`${FOLDER}site.yml`, ROOT), 'utf8')));
  t.deepEqual(on, { push: { branches: ['main'] }, pull_request: null });
  const jobs = await readJobs(t);
  const jobOf = (name: string) => jobs.find((each) => each.name === `site.yml ${name}`)?.job;
  t.is(jobOf('build')?.if, undefined);
  t.true(jobOf('build')?.steps.some(({ run }) => run?.startsWith('npm run site ')));
  t.is(jobOf('publish')?.if, "github.event_name == 'push'");
});

test('the tests run on Linux, macOS and Windows, and the images are built where there is an engine', async (t) => {
  const jobs = (await readJobs(t)).filter(({ name }) => name.startsWith('ci.yml '));
  const machines = jobs.flatMap(({ job }) => [job['runs-on'], ...(job.strategy?.matrix.os ?? [])]);
  for (const machine of ['ubuntu-latest', 'macos-latest', 'windows-latest'])
    t.true(machines.includes(machine), machine);
  const commands = jobs.flatMap(({ job }) => job.steps.map(({ run }) => run));
  t.true(commands.includes('npm run test:image'));
});
