/**
 * What can happen to a broker, and to a device behind it, through the built bridge: at a broker where it offers its server, and
 * before a server that is there. Needs a current build.
 */
import test, { type ExecutionContext } from 'ava';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { type Answer, LATER, startTestServer } from '../support/mqtt-peers.ts';
import { assertGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { answerTo, type CarriedClient, openAtBroker, openCarried } from './carried-clients.ts';
import { type FaultyOptions, startFaulty } from './faulty-bridge.ts';
import { BROKER } from './faulty-connections.ts';

const mqtt = WHY_NO_MOSQUITTO === undefined ? test.serial : test.serial.skip;
if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());

const NAME = 'faults/server';
const REFUSING = ['allow_anonymous false'];

const errorOf = (reason: string) => ({ code: -32603, data: { bridge: { reason } } });

const callOf = (id: number, name: string): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: { text: 'there' } },
});

/** A broker, and a network between it and whoever is to be cut off. */
async function startBroker(t: ExecutionContext) {
  const broker = await startMosquitto(BROKER);
  t.teardown(broker.stop);
  const network = await startFaultProxy(new URL(broker.url));
  t.teardown(network.close);
  const url = new URL(`${broker.url}/${NAME}`);
  return { broker, network, url };
}

// ---- at a broker where the bridge offers its server

/** The bridge at a broker, and a client there with an open call. */
async function offer(t: ExecutionContext, options: FaultyOptions = {}) {
  const at = await startBroker(t);
  const hub = ['--dial', at.network.through(at.url).href];
  const open = (): Promise<CarriedClient> => openCarried({ options: hub, open: () => openAtBroker(at.url) }, bridge);
  const isReady: FaultyOptions['isReady'] = async (started) =>
    (await openCarried({ options: hub, open: () => openAtBroker(at.url) }, started)).leave();
  const faults = await startFaulty(t, { ...options, options: hub, isReady });
  const { bridge } = faults;
  const others = bridge.children();
  const client = await open();
  t.teardown(client.destroy);
  const server = bridge.children().find((pid) => !others.includes(pid)) ?? Number.NaN;
  client.say(callOf(1, 'never-answers'));
  client.say(callOf(2, 'echo'));
  await answerTo(client, 2);
  /** The next client is served, and nothing has stayed of the other one. */
  const servesAgain = async (): Promise<void> => {
    const next = await open();
    next.say(callOf(1, 'echo'));
    t.like(await answerTo(next, 1), { result: { content: [{ text: 'there' }] } });
    await next.leave();
  };
  return { ...at, ...faults, client, server, servesAgain };
}

mqtt('a broker that is killed during a call takes its clients along, and gets the server again', async (t) => {
  const { broker, witness, server, servesAgain, recovered } = await offer(t);
  await broker.end();
  await assertGone([server]);
  t.is((await witness.call('echo', 'undisturbed')).text, 'undisturbed');
  await broker.restart();
  await servesAgain();
  await recovered();
});

mqtt('a broker that falls silent is found out, and gets the server again when the network is back', async (t) => {
  const { network, witness, server, servesAgain, recovered } = await offer(t);
  network.fault = { kind: 'silence' };
  await assertGone([server]);
  t.is((await witness.call('echo', 'undisturbed')).text, 'undisturbed');
  network.fault = { kind: 'none' };
  await servesAgain();
  await recovered();
});

mqtt('a broker that refuses the bridge for a while is called until it does not', async (t) => {
  const { bridge, broker, witness, server, servesAgain, recovered } = await offer(t);
  await broker.restart(REFUSING);
  await assertGone([server]);
  const refusal = await waitFor(() => bridge.logs.find(({ msg }) => /refused the connection/.test(String(msg))));
  t.is((await witness.call('echo', 'undisturbed')).text, 'undisturbed');
  await broker.restart(BROKER.settings);
  await servesAgain();
  await recovered({ log: [`warn ${refusal.msg}`] });
});

// ---- before a server at a broker

const echo: Answer = ({ method, params }) => {
  const { text } = (params as { readonly arguments?: { readonly text?: string } } | undefined)?.arguments ?? {};
  if (text === 'wait') return LATER;
  return method === 'tools/call' ? { content: [{ type: 'text', text }] } : {};
};

/** The bridge before a device at a broker. */
async function use(t: ExecutionContext, options: readonly string[] = []) {
  const at = await startBroker(t);
  const startDevice = async (url: string) => {
    const device = await startTestServer({ url, serverId: 'device-1', serverName: NAME, answer: echo });
    t.teardown(() => device.client.endAsync(true));
    return device;
  };
  const device = await startDevice(at.network.through(at.url).href);
  const faults = await startFaulty(t, { options, target: [at.url.href] });
  return { ...at, ...faults, device, startDevice };
}

mqtt(
  'a broker is killed during a call, and then refuses for a while: plain errors, and the session goes on',
  async (t) => {
    const { bridge, broker, victim, device, startDevice, recovered } = await use(t);
    const open = victim.call('echo', 'wait');
    await waitFor(() => device.received.some(({ message }) => JSON.stringify(message).includes('wait')));
    await broker.end();
    t.like((await open).error, errorOf('ERR_UPSTREAM_CLOSED'));
    t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_CONNECT'));
    await broker.restart(REFUSING);
    t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_AUTH'));
    await broker.restart(BROKER.settings);
    await startDevice(broker.url);
    t.is((await victim.call('echo', 'and on')).text, 'and on');
    const codes = bridge.logs.filter(({ level }) => level === 'warn').map(({ code, msg }) => `warn ${code ?? msg}`);
    // How often the session of the other client looks for the server meanwhile is a matter of time.
    const kinds = ['ERR_UPSTREAM_AUTH', 'ERR_UPSTREAM_CLOSED', 'ERR_UPSTREAM_CONNECT'];
    t.deepEqual(
      [...new Set(codes)].sort(),
      kinds.map((code) => `warn ${code}`),
    );
    await recovered({ log: codes });
  },
);

mqtt(
  'a device that loses its power, unnoticed by its broker: calls time out until it is back, and go on then',
  async (t) => {
    const { broker, network, victim, startDevice, recovered } = await use(t, ['--request-timeout', '3s']);
    t.is((await victim.call('echo', 'one')).text, 'one');
    network.fault = { kind: 'silence' };
    t.like((await victim.call('echo', 'x')).error, errorOf('ERR_UPSTREAM_TIMEOUT'));
    await startDevice(broker.url);
    t.is((await victim.call('echo', 'and on')).text, 'and on');
    await recovered({ log: Array(2).fill('warn ERR_UPSTREAM_CLOSED') });
  },
);
