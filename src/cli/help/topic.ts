/** Topics of the help: the overview, a command, the list of groups of options, one of these groups, all options, or an error. */
import { BridgeError, ERROR_CODES, type ErrorCode } from '../../errors.ts';
import { editDistance, suggest } from '../../suggest.ts';
import { BRIDGE_VERBS, type BridgeVerb, OPTION_GROUPS, type OptionGroup } from '../options/option-table.ts';

export type HelpTopic =
  /** The most common commands and options, on one screen. */
  | { readonly kind: 'overview' }
  | { readonly kind: 'all' }
  | { readonly kind: 'verb'; readonly verb: BridgeVerb }
  | { readonly kind: 'groups' }
  /** The options of one command in this group, or of all commands. */
  | { readonly kind: 'group'; readonly group: OptionGroup; readonly verb: BridgeVerb | undefined }
  | { readonly kind: 'error'; readonly code: ErrorCode };

/** Words without a page of their own, for which the overview is shown. */
const IN_OVERVIEW: readonly string[] = ['completion', 'help', 'version'];

/** A group with the name of a command has no topic, since the help of that command includes it. */
const GROUPS = Object.keys(OPTION_GROUPS).filter(isGroup);
export const GROUP_TOPICS = GROUPS.filter((group) => verbOf(group) === undefined);

const WORDS: readonly string[] = [...BRIDGE_VERBS, ...GROUP_TOPICS, 'groups', 'all'];
const CODES = Object.keys(ERROR_CODES).filter(isCode);

/** Every word that `help` accepts, apart from those of the overview. */
export const TOPIC_WORDS: readonly string[] = [...WORDS, ...CODES];

/**
 * @param words a topic; a command may stand before a group
 * @throws BridgeError ERR_CONFIG_OPTION that lists the topics
 */
export function parseHelpTopic([first, second]: readonly string[]): HelpTopic {
  if (first === undefined || IN_OVERVIEW.includes(first)) return { kind: 'overview' };
  if (first === 'all' || first === 'groups') return { kind: first };
  if (/^err_/i.test(first)) return { kind: 'error', code: parseCode(first.toUpperCase()) };
  const verb = verbOf(first);
  if (verb !== undefined && second === undefined) return { kind: 'verb', verb };
  const word = verb === undefined ? first : (second ?? '');
  const group = GROUP_TOPICS.find((candidate) => candidate === word);
  if (group !== undefined) return { kind: 'group', group, verb };
  const [meant] = suggest(word, verb === undefined ? WORDS : GROUP_TOPICS);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    `There is no help on ${JSON.stringify(word)}.${hint} Topics are the commands ${BRIDGE_VERBS.join(', ')}, the groups of options ${GROUP_TOPICS.join(', ')}, the codes of errors, and groups and all.`,
  );
}

function parseCode(word: string): ErrorCode {
  if (isCode(word)) return word;
  const meant = CODES.map((code) => ({ code, distance: editDistance(word, code) })).sort(
    (one, other) => one.distance - other.distance,
  )[0]?.code;
  throw new BridgeError('ERR_CONFIG_OPTION', `There is no error ${JSON.stringify(word)}. Did you mean ${meant}?`);
}

/** Returns the topic of `mcp-portage <verb> --help`. Without a verb that has a page, that is the overview. */
export function topicOfVerb(word: string | undefined): HelpTopic {
  const verb = verbOf(word);
  return verb === undefined ? { kind: 'overview' } : { kind: 'verb', verb };
}

function verbOf(word: string | undefined): BridgeVerb | undefined {
  return BRIDGE_VERBS.find((candidate) => candidate === word);
}

function isCode(word: string): word is ErrorCode {
  return Object.hasOwn(ERROR_CODES, word);
}

function isGroup(word: string): word is OptionGroup {
  return Object.hasOwn(OPTION_GROUPS, word);
}
