import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { type Mosquitto, PATIENT_BROKER, startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { waitFor } from '../support/wait-for.ts';
import { SoakCarried } from './carried-client.ts';
import { Connections, callModern, type Resident, SoakSession } from './client.ts';
import { judgeFlat, type Sample, takeSample, type Verdict } from './samples.ts';
import { SoakStream } from './stream-client.ts';
import { Tally } from './tally.ts';

const SERVER = fileURLToPath(new URL('../fixtures/servers/echo.js', import.meta.url));
/** Those who abandoned a session are forgotten after this. */
const SESSION_TIMEOUT_S = 20;
const SAMPLE_MS = 1000;
/** More at once would only wait for connections. */
const AT_ONCE = 32;

export interface LoadOptions {
  readonly title: string;
  readonly isolation: 'shared' | 'session';
  /** Who stays from beginning to end. */
  readonly residents: number;
  /** The same over HTTP+SSE. */
  readonly streamResidents: number;
  /** The same over WebSocket, and as many on a byte stream, over gRPC and, where there is one, at a broker. */
  readonly carriedResidents: number;
  readonly visitorsPerSecond: number;
  readonly modernPerSecond: number;
  /** Runs while nobody is there: what a shared server may keep. */
  readonly idleChildren: number;
}

export interface LoadReport {
  readonly lines: readonly string[];
  readonly failures: readonly string[];
}

/** One bridge, everybody who calls it, and what is left of it all. */
export class Load {
  readonly #options: LoadOptions;
  readonly #bridge: Bridge;
  readonly #broker: Mosquitto | undefined;
  readonly #connections: Connections;
  readonly #residentTally = new Tally();
  readonly #streamTally = new Tally();
  readonly #webSocketTally = new Tally();
  readonly #byteStreamTally = new Tally();
  readonly #grpcTally = new Tally();
  readonly #mqttTally = new Tally();
  readonly #visitorTally = new Tally();
  readonly #modernTally = new Tally();
  readonly #samples: Sample[] = [];
  readonly #idle: Sample;

  private constructor(options: LoadOptions, bridge: Bridge, broker: Mosquitto | undefined) {
    this.#options = options;
    this.#bridge = bridge;
    this.#broker = broker;
    this.#connections = new Connections(bridge.url);
    this.#idle = takeSample(bridge.pid);
  }

  static async start(options: LoadOptions): Promise<Load> {
    const { residents, streamResidents, carriedResidents } = options;
    const limits = ['--max-sessions', String(4 * (residents + streamResidents + 4 * carriedResidents) + 1000)];
    const timeout = ['--session-timeout', `${SESSION_TIMEOUT_S}s`];
    const broker = WHY_NO_MOSQUITTO === undefined ? await startMosquitto(PATIENT_BROKER) : undefined;
    const places = ['--stream', 'tcp://127.0.0.1:0', '--grpc', '127.0.0.1:0', ...hubAt(broker)];
    const args = ['--isolation', options.isolation, ...places, ...limits, ...timeout];
    const bridge = await startBridge([...args, '--', process.execPath, SERVER]);
    // Its connection stays, whoever is there.
    if (broker !== undefined) await waitFor(() => bridge.logs.some(({ msg }) => /^connected to mqtt:/.test(`${msg}`)));
    return new Load(options, bridge, broker);
  }

  async run(endMs: number): Promise<LoadReport> {
    const { residents, streamResidents, carriedResidents, visitorsPerSecond, modernPerSecond } = this.#options;
    const webSocketUrl = new URL(`ws://${this.#bridge.url.host}/ws`);
    const byteStreamUrl = await this.#urlOf('Byte stream');
    const grpcUrl = await this.#urlOf('gRPC');
    const brokerUrl = this.#broker && new URL(`${this.#broker.url}/${SERVER_NAME}`);
    const isOver = (): boolean => Date.now() >= endMs;
    const sessions = [
      ...(await openAll(residents, () => this.#openResident())),
      ...(await openAll(streamResidents, () =>
        SoakStream.open(this.#connections, this.#bridge.sseUrl, this.#streamTally),
      )),
      ...(await openAll(carriedResidents, () => SoakCarried.open(webSocketUrl, this.#webSocketTally))),
      ...(await openAll(carriedResidents, () => SoakCarried.open(byteStreamUrl, this.#byteStreamTally))),
      ...(await openAll(carriedResidents, () => SoakCarried.open(grpcUrl, this.#grpcTally))),
      ...(brokerUrl === undefined
        ? []
        : await openAll(carriedResidents, () => SoakCarried.open(brokerUrl, this.#mqttTally))),
    ];
    const sampling = this.#sample(isOver);
    await Promise.all([
      ...Array.from({ length: AT_ONCE }, (_, lane) => this.#callInTurn(sessions, lane, isOver)),
      this.#repeat(visitorsPerSecond, isOver, () => this.#visit()),
      this.#repeat(modernPerSecond, isOver, () => callModern(this.#connections, this.#modernTally)),
    ]);
    await sampling;
    await Promise.all(sessions.map((session) => session.close()));
    this.#connections.close();
    return this.#report(await this.#settle());
  }

  #urlOf(label: string): Promise<URL> {
    return waitFor(() => {
      const line = this.#bridge.logs.find(({ msg }) => msg?.startsWith(label) === true);
      return line && new URL((line.endpoint as { url: string }).url);
    });
  }

  async #openResident(): Promise<SoakSession | undefined> {
    const session = await SoakSession.open(this.#connections, this.#residentTally);
    session?.listen();
    return session;
  }

  /** Each lane goes round its share of the sessions. */
  async #callInTurn(sessions: readonly Resident[], lane: number, isOver: () => boolean): Promise<void> {
    const own = sessions.filter((_, index) => index % AT_ONCE === lane);
    while (!isOver() && own.length > 0) {
      for (const session of own) if (!isOver()) await session.call();
      // Other programs of this machine need time, too; a round is far shorter than the time of a session.
      await delay(20);
    }
  }

  async #repeat(perSecond: number, isOver: () => boolean, act: () => Promise<void>): Promise<void> {
    if (perSecond === 0) return;
    const underWay = new Set<Promise<void>>();
    while (!isOver()) {
      const one = act().finally(() => underWay.delete(one));
      underWay.add(one);
      await delay(1000 / perSecond);
      if (underWay.size >= AT_ONCE) await Promise.race(underWay);
    }
    await Promise.all(underWay);
  }

  async #visit(): Promise<void> {
    const session = await SoakSession.open(this.#connections, this.#visitorTally);
    if (session === undefined) return;
    session.listen();
    await session.call();
    await session.call();
    await session.abandon();
  }

  async #sample(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      this.#samples.push(takeSample(this.#bridge.pid));
      await delay(SAMPLE_MS);
    }
  }

  /** What is left once everybody is gone and sessions had their time. */
  async #settle(): Promise<Sample | undefined> {
    const { idleChildren } = this.#options;
    const isClean = (): Sample | false => {
      const now = takeSample(this.#bridge.pid);
      // A shared child has its three pipes.
      return now.children <= idleChildren && now.handles <= this.#idle.handles + 3 * idleChildren && now;
    };
    const left = await waitFor(isClean, { timeoutMs: (SESSION_TIMEOUT_S + 40) * 1000 }).catch(() => undefined);
    this.#samples.push(takeSample(this.#bridge.pid));
    return left;
  }

  async #report(left: Sample | undefined): Promise<LoadReport> {
    const { title } = this.#options;
    const failures: string[] = [];
    const last = this.#samples.at(-1);
    const verdict: Verdict = judgeFlat(this.#samples.slice(0, -1));
    if (!verdict.isFlat) failures.push(`${title}: not flat: ${verdict.report}`);
    if (left === undefined)
      failures.push(`${title}: left behind: ${last?.handles} handles, ${last?.children} children`);
    const tallies = {
      residents: this.#residentTally,
      'residents over HTTP+SSE': this.#streamTally,
      'residents over WebSocket': this.#webSocketTally,
      'residents on byte streams': this.#byteStreamTally,
      'residents over gRPC': this.#grpcTally,
      'residents at a broker': this.#mqttTally,
      visitors: this.#visitorTally,
      modern: this.#modernTally,
    };
    for (const [who, tally] of Object.entries(tallies)) {
      if (tally.lost + tally.crossed > 0) failures.push(`${title}, ${who}: ${tally}\n  ${tally.examples.join('\n  ')}`);
    }
    const serious = this.#bridge.logs.filter(({ level }) => level === 'error' || level === 'fatal');
    for (const { code, msg } of serious.slice(0, 5)) failures.push(`${title}: the bridge logged ${code}: ${msg}`);
    await this.#bridge.stop().catch((error: unknown) => failures.push(`${title}: ${error}`));
    await this.#broker?.stop();
    const lines = [
      ...Object.entries(tallies).map(([who, tally]) => `${title}, ${who}: ${tally}`),
      `${title}: ${verdict.report}`,
      `${title}: at the end ${last?.handles} handles (${this.#idle.handles} before anybody came), ${last?.children} children`,
    ];
    return { lines, failures };
  }
}

const SERVER_NAME = 'soak/server';

const hubAt = (broker: Mosquitto | undefined): readonly string[] =>
  broker === undefined ? [] : ['--dial', `${broker.url}/${SERVER_NAME}`];

/** Some at a time; those who were refused are left out. */
async function openAll<Who>(count: number, open: () => Promise<Who | undefined>): Promise<Who[]> {
  const opened: Who[] = [];
  let left = count;
  const openSome = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const one = await open();
      if (one !== undefined) opened.push(one);
    }
  };
  await Promise.all(Array.from({ length: 8 }, openSome));
  return opened;
}
