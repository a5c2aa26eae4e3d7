/** A server that takes only tokens that are bound to a key, and an authorization server that gives them. [RFC 9449] */
import type { ExecutionContext } from 'ava';
import { type Answer, type LoginWorld, startLoginWorld } from './login-world.ts';
import { type ExpectedProof, type Proof, ProofReader } from './proofs.ts';

export interface BoundWorld {
  readonly world: LoginWorld;
  /** The nonces that are wanted in proofs; undefined: none. */
  readonly nonces: { issuer: string | undefined; server: string | undefined };
  /** The keys of the proofs that came, at both servers. */
  readonly keys: Set<string>;
  /** What was wrong in proofs. */
  readonly faults: string[];
  readonly server: ProofReader;
  readonly issuer: ProofReader;
}

const METADATA = { dpop_signing_alg_values_supported: ['ES256'] };

/** Gone when the test ends. */
export async function startBoundWorld(t: ExecutionContext): Promise<BoundWorld> {
  const world = await startLoginWorld(t);
  const nonces: BoundWorld['nonces'] = { issuer: undefined, server: undefined };
  const bound = {
    world,
    nonces,
    keys: new Set<string>(),
    faults: [],
    server: new ProofReader(),
    issuer: new ProofReader(),
  };
  world.metadata = METADATA;
  world.challenge = () => `DPoP algs="ES256", resource_metadata="${world.origin}${world.resourcePath}"`;
  /** Tokens by the keys that they are bound to. */
  const bindings = new Map<string, string>();
  let thumbprint = '';
  world.judgeTokens = async ({ dpop, path }) => {
    const expected = { method: 'POST', url: `${world.issuer}${path}` };
    const proof = await judge(bound, bound.issuer, dpop, expected, nonces.issuer);
    if (typeof proof !== 'object') return { status: 400, body: { error: proof }, headers: nonceIn(nonces.issuer) };
    thumbprint = proof.thumbprint;
    return undefined;
  };
  world.answerToken = (_, body) => {
    bindings.set(String(body.access_token), thumbprint);
    return { status: 200, body: { ...body, token_type: 'DPoP' } };
  };
  world.judge = async (token, { headers, method = '', url = '' }) => {
    const expected = { method, url: `${world.origin}${new URL(url, world.origin).pathname}`, token };
    const isShown = headers.authorization === `DPoP ${token}`;
    const proof = isShown ? await judge(bound, bound.server, headers.dpop, expected, nonces.server) : 'invalid_token';
    if (typeof proof === 'object' && proof.thumbprint === bindings.get(token)) return undefined;
    const error = typeof proof === 'object' ? 'invalid_token' : proof;
    return refuse(error, nonces.server);
  };
  return bound;
}

/** The refusal of a server, as it says that in a challenge. */
export function refuse(error: string, nonce?: string): Answer {
  return { status: 401, headers: { 'www-authenticate': `DPoP error="${error}"`, ...nonceIn(nonce) } };
}

const nonceIn = (nonce: string | undefined): Readonly<Record<string, string>> =>
  nonce === undefined ? {} : { 'dpop-nonce': nonce };

async function judge(
  { keys, faults }: BoundWorld,
  reader: ProofReader,
  text: unknown,
  expected: ExpectedProof,
  nonce: string | undefined,
): Promise<Proof | 'invalid_dpop_proof' | 'use_dpop_nonce'> {
  try {
    const proof = await reader.read(text, expected);
    keys.add(proof.thumbprint);
    return proof.nonce === nonce ? proof : 'use_dpop_nonce';
  } catch (thrown) {
    faults.push(String(thrown));
    return 'invalid_dpop_proof';
  }
}
