/**
 * Everyday words that mean nearly the same when somebody asks a program to do something. Each group is a concept, and a
 * tool that names one word of it is found by the others. The groups are of general use: a word belongs here because
 * people exchange it for the others with any server, never because one tool would be found by it.
 */
import { stemmer } from 'stemmer';

const GROUPS = [
  // Actions.
  'create add new make insert generate compose write open',
  'delete remove erase drop destroy clear purge trash discard forget',
  'find search look lookup locate query seek',
  'get fetch retrieve read load show view display see open',
  'list enumerate browse which',
  'update edit change modify set alter adjust patch mark',
  'send post publish submit deliver tell notify',
  'answer reply respond response',
  'run execute exec invoke launch start trigger',
  'stop end kill terminate halt abort close',
  'cancel abort delete withdraw',
  'move rename relocate',
  'copy duplicate clone',
  'save store persist keep remember',
  'download save export',
  'upload attach import',
  'merge combine join',
  'compare diff different difference',
  'undo revert reset restore rollback discard',
  'explain describe',
  'schedule plan book arrange',
  'accept approve confirm',
  'decline reject deny refuse',
  'go navigate visit browse',
  'assign delegate',
  'buy purchase order',
  'pay payment charge',
  'translate convert',
  'count number total many',
  'enable activate',
  'disable deactivate',
  'finish complete done resolve close',
  // Things.
  'mail email',
  'message chat msg',
  'picture image photo screenshot img',
  'file document doc',
  'folder directory dir',
  'website site web page url webpage',
  'internet web online',
  'meeting event appointment',
  'task todo',
  'issue ticket bug',
  'person people user member who',
  'group team',
  'comment note remark',
  'place location address',
  'route direction way drive',
  'table sheet spreadsheet',
  'row record entry',
  'column field',
  'label tag category',
  'log output',
  'error failure crash exception',
  'memory remember',
  'history past',
  'emoji reaction smiley',
  'free available availability busy',
  'version release',
  'credential password secret token',
  'price cost',
  'performance speed fast slow',
  'login signin authenticate',
  'shell terminal command bash',
  // Abbreviations.
  'repository repo',
  'database db',
  'documentation doc',
  'information info',
  'environment env',
  'configuration config settings',
  'organization org',
  'authentication auth',
  'kubernetes k8s',
  'application app',
  'administrator admin',
  'specification spec',
  'parameter param',
  'temporary temp tmp',
  'javascript js',
  'postgresql postgres',
  'pull pr',
].map((group) => group.split(' '));

/** Begins the term of a concept, so that it is never a word of a text. */
const MARK = '=';

const CONCEPTS = new Map<string, string[]>();
for (const group of GROUPS) {
  for (const word of group) {
    const stem = stemmer(word);
    CONCEPTS.set(stem, [...(CONCEPTS.get(stem) ?? []), `${MARK}${group[0]}`]);
  }
}

/** The concepts of a word, given by its stem. */
export function conceptsOf(stem: string): readonly string[] {
  return CONCEPTS.get(stem) ?? NONE;
}

const NONE: readonly string[] = [];
