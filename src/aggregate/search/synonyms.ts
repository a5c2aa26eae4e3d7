/**
 * Everyday words that mean nearly the same when somebody asks a program to do something. Each group is a concept, and a
 * tool that names one word of it is found by the others. The groups are of general use: a word belongs here because
 * people exchange it for the others with any server, never because one tool would be found by it.
 */
import { stemmer } from 'stemmer';

const GROUPS = [
  // Creating, changing and removing.
  'create add new make insert generate compose put open',
  'write type enter input fill',
  'delete remove erase drop destroy clear purge trash discard forget throw bin',
  'update edit change modify set alter adjust patch replace',
  'move rename relocate shift',
  'copy duplicate clone fork',
  'save store persist keep remember memorize record',
  'undo revert reverse reset restore rollback discard',
  'merge combine join unite',
  'split divide break separate',
  'assign delegate',
  'mark tag flag label',
  'sort order arrange organize filter',
  'filter rule automatic',
  'convert translate transform',
  'compress zip gzip archive',
  // Finding and reading.
  'find search look lookup locate query seek discover',
  'get fetch retrieve read load show view display see content',
  'list enumerate browse exist which',
  'explain describe detail info information metadata property',
  'extract scrape crawl read content',
  'compare diff different difference change',
  'count number total amount many',
  'summarize summary overview',
  'check verify validate test inspect',
  'research investigate analyze analysis',
  'history past log previous earlier',
  'latest recent last newest current',
  'status state progress',
  'size big large',
  'structure schema tree hierarchy layout',
  'average sum aggregate group statistic',
  // Sending and talking.
  'send post publish submit deliver tell notify push share',
  'answer reply respond response rsvp',
  'accept approve confirm agree',
  'decline reject deny refuse',
  'invite invitation attendee guest participant',
  'message chat msg',
  'channel room',
  'thread discussion conversation',
  'mail email inbox',
  'draft prepare',
  'attachment attach file',
  'comment note remark feedback',
  'review feedback',
  'emoji reaction smiley thumb like',
  'alert alarm warning notification reminder',
  // Running and stopping.
  'run execute exec invoke launch start trigger begin',
  'stop end kill terminate halt abort close quit exit',
  'cancel abort delete withdraw',
  'pause suspend resume',
  'wait delay until',
  'enable activate',
  'disable deactivate',
  'install deploy setup',
  'uninstall remove',
  'deployment rollout release deploy',
  'scale replica copies instance resize',
  'shell terminal command bash',
  'script code program javascript',
  'log output print console',
  'error failure fail crash exception problem',
  'finish complete done resolve close',
  'schedule plan book arrange reschedule postpone',
  // Moving data and moving about.
  'download save export fetch pull',
  'upload attach import',
  'sync pull update latest fetch',
  'navigate go visit open browse',
  'back previous return',
  'click press tap push hit',
  'select choose pick option dropdown menu',
  'website site web page url webpage link',
  'internet web online',
  'news headline',
  'tab window',
  'dialog popup prompt',
  'connect connection link reach access',
  'forward tunnel proxy redirect',
  // Things of an office.
  'file document doc',
  'folder directory dir',
  'page document article wiki note',
  'text markdown content',
  'picture image photo screenshot img snapshot',
  'video movie film clip',
  'audio sound music song voice',
  'meeting event appointment',
  'calendar agenda diary',
  'free available availability busy',
  'time clock now date',
  'due deadline',
  'task todo job',
  'subtask child part small',
  'dependency depend block prerequisite',
  'section column board stage',
  'issue ticket bug problem',
  'project board',
  'person people user member who colleague employee contact',
  'profile account personal',
  'account customer client',
  'group team',
  'organization company workspace',
  'category label tag folder',
  'table sheet spreadsheet grid',
  'row record entry item',
  'cell value field',
  'column field attribute',
  'memory remember knowledge know fact entity observation',
  'relation relationship connection link',
  // Places and travel.
  'place location address spot',
  'coordinate latitude longitude geocode position',
  'route direction way drive',
  'distance far long duration travel',
  'elevation altitude height high',
  'near nearby local around close',
  'restaurant shop store business hour',
  'hotel accommodation apartment flat house rent lodging stay room',
  'trip travel vacation holiday journey',
  'weather forecast temperature',
  // Money.
  'buy purchase order',
  'pay payment charge',
  'invoice bill receipt',
  'price cost fee',
  'product item article',
  // Software and machines.
  'repository repo',
  'commit revision',
  'version release tag',
  'author blame who wrote',
  'database db',
  'server host machine node instance',
  'container docker pod',
  'performance speed fast faster slow optimize efficient',
  'index faster speed',
  'network request traffic',
  'credential password secret token key',
  'login signin authenticate auth sign',
  'permission access role grant allow right',
  'multiple several many batch bulk',
  // Abbreviations.
  'documentation doc manual',
  'environment env',
  'configuration config settings',
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

const BY_WORD = new Map<string, string[]>();
const BY_STEM = new Map<string, string[]>();
for (const [index, group] of GROUPS.entries()) {
  for (const word of group) {
    add(BY_WORD, word, `${MARK}${index}`);
    add(BY_STEM, stemmer(word), `${MARK}${index}`);
  }
}

function add(concepts: Map<string, string[]>, key: string, concept: string): void {
  const known = concepts.get(key) ?? [];
  if (!known.includes(concept)) concepts.set(key, [...known, concept]);
}

/**
 * The concepts of a word, which has this stem. A word of a group stands for its own groups alone, since words as different
 * as `terminal` and `terminate` have one stem.
 */
export function conceptsOf(word: string, stem: string): readonly string[] {
  return BY_WORD.get(word) ?? BY_STEM.get(stem) ?? NONE;
}

const NONE: readonly string[] = [];
