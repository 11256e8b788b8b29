import { type Receiver, type ReceiverSetup, WebhookError } from '../../src/index.ts'

/** The rules of a platform for the processes that it runs functions in. */
interface PlatformRules {
  /** The name of one such process there, and of several of them. */
  readonly instance: string
  readonly instances: string
  /** `true` if nothing runs after an answer. Otherwise `waitUntil` keeps the instance running, for a time. */
  readonly stopsAfterAnswer: boolean
  /** The inbox that keeps the promise there. */
  readonly inbox: string
}

const platforms = {
  'AWS Lambda': {
    instance: 'sandbox',
    instances: 'sandboxes',
    stopsAfterAnswer: true,
    inbox: 'queueInbox with SQS',
  },
  'Cloudflare Workers': {
    instance: 'isolate',
    instances: 'isolates',
    stopsAfterAnswer: false,
    inbox: 'durableObjectInbox, or queueInbox with Cloudflare Queues',
  },
  Vercel: {
    instance: 'function instance',
    instances: 'function instances',
    stopsAfterAnswer: false,
    inbox: 'queueInbox with a queue such as QStash',
  },
  Netlify: {
    instance: 'function instance',
    instances: 'function instances',
    stopsAfterAnswer: false,
    inbox: 'queueInbox with a queue such as QStash',
  },
} as const satisfies Record<string, PlatformRules>

/** A platform that runs functions: it stops an instance after its answer, and starts several of them at once. */
export type Platform = keyof typeof platforms

/**
 * Checks that a receiver can keep its promise on a platform that runs functions. A setup that would lose acknowledged
 * events as a matter of course is an error. One that can lose them, or handle them twice, is a warning in the receiver's
 * log.
 * @param adapter the name of the adapter, for the message
 * @param waitUntil whether the platform is asked to wait for the handlers after the answer
 * @throws WebhookError `invalid_option`
 */
export function checkPlatform(
  adapter: string,
  platform: Platform,
  { setup }: Pick<Receiver, 'setup'>,
  { waitUntil = true }: { readonly waitUntil?: boolean } = {},
): void {
  const { stopsAfterAnswer, ...rules } = platforms[platform]
  const losing = losses(platform, { ...rules, stopsAfterAnswer: stopsAfterAnswer || !waitUntil }, setup)
  if (losing !== undefined) throw new WebhookError('invalid_option', `${adapter}: ${losing}`)
  const risk = risks(platform, rules, setup)
  const { inbox, ack, logger } = setup
  if (risk !== undefined) logger.warn({ platform, inbox: inbox.name, ack }, `${adapter}: ${risk}`)
}

/** Says why the setup loses events, if it does. */
function losses(platform: Platform, rules: PlatformRules, { inbox, ack }: ReceiverSetup): string | undefined {
  const { instance, instances, stopsAfterAnswer, inbox: fix } = rules
  if (inbox.storage === 'file')
    return `${platform} deletes the files of its ${instances}, and with them ${inbox.name}: use ${fix}`
  if (inbox.storage !== 'memory' || ack !== 'accepted' || !stopsAfterAnswer) return undefined
  return `${platform} stops a ${instance} after its answer, and ${inbox.name} loses events it has acknowledged: use ${fix}`
}

/** Says how the setup can lose events or handle them twice, if it can. */
function risks(
  platform: Platform,
  { instance, instances, inbox: fix }: Omit<PlatformRules, 'stopsAfterAnswer'>,
  { inbox: { name, storage, localKeys }, ack }: ReceiverSetup,
): string | undefined {
  if (storage === 'database') {
    return `the handlers of ${name} run only while a ${instance} does: also run a process that stays alive, or use ${fix}`
  }
  const reasons = [
    localKeys === true && `two ${instances} can handle the same event, since ${name} remembers keys in one of them`,
    storage === 'memory' &&
      ack === 'accepted' &&
      `${platform} can end a ${instance} before ${name} has handled its events`,
    storage === 'memory' && ack === 'handled' && 'some senders never repeat an event whose handler failed',
  ].filter((reason) => reason !== false)
  if (reasons.length === 0) return undefined
  return `${reasons.join('; ')}: ${storage === 'memory' ? `use ${fix}` : 'give it a store that they share'}`
}
