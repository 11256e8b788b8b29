import { WebhookError } from '../errors.ts'
import type { InboxDefinition } from '../inbox/inbox.ts'
import type { Logger } from '../internal/logger.ts'
import { requestsEndWork } from '../internal/requests.ts'

const anyQueue = 'queueInbox with a queue such as QStash'

/** The inbox that keeps the promise on each platform. */
const inboxes = {
  'AWS Lambda': 'queueInbox with SQS',
  'Cloudflare Workers': 'durableObjectInbox, or queueInbox with Cloudflare Queues',
  Vercel: anyQueue,
  Netlify: anyQueue,
  'Cloud Run': 'queueInbox with Pub/Sub or Cloud Tasks',
  'Azure Functions': 'queueInbox with Service Bus',
  'Deno Deploy': anyQueue,
  'Edge Runtime': anyQueue,
}

/** These may be set to run between requests, which nothing in the process tells. */
const mayOutliveRequests: readonly string[] = ['Cloud Run', 'Azure Functions', 'Deno Deploy']

/**
 * A platform that runs functions: it stops an instance after its answer, and starts several of them at the same time.
 */
export type Platform = keyof typeof inboxes

/** Where a receiver can be told that it runs. */
export const platforms = ['server', ...Object.keys(inboxes)] as (Platform | 'server')[]

/**
 * Checks that a receiver can keep its promise on its platform. A setup that can lose events, or handle them twice, is a
 * warning.
 * @returns the reason why a delivery without `waitUntil` would be lost, if it would
 * @throws WebhookError `invalid_option` if the setup would lose acknowledged events as a matter of course
 */
export function checkPlatform(
  { name, storage, localKeys, outlivesRequests }: InboxDefinition,
  ack: 'accepted' | 'handled',
  logger: Logger,
  configured?: Platform | 'server',
): string | undefined {
  const platform = platformOf(configured)
  // A Durable Object is not an instance of a function.
  if (platform === undefined || platform === 'server' || outlivesRequests === true) return undefined
  const fix = `use ${inboxes[platform]}`
  const isMemory = storage === 'memory'
  const losesAcknowledged = isMemory && ack === 'accepted'
  const alwaysStops = platform === 'AWS Lambda' || platform === 'Cloudflare Workers'
  const unlessServer = alwaysStops ? '' : "; if this process stays alive, say platform: 'server'"
  const stops = `${platform} stops an instance after its answer, and ${name} loses events it has acknowledged: ${fix}`
  if (storage === 'file')
    throw invalid(`${platform} deletes the files of its instances, and with them ${name}: ${fix}${unlessServer}`)
  if (losesAcknowledged && alwaysStops) throw invalid(`${stops}, or ack: 'handled'`)
  const risks = [
    storage === 'database' && `the handlers of ${name} run only while an instance does`,
    localKeys === true && `two instances can handle the same event, since ${name} remembers keys in one of them`,
    losesAcknowledged && `${platform} can end an instance before ${name} has handled its events`,
    isMemory && !losesAcknowledged && 'some senders never repeat an event whose handler failed',
  ].filter((risk) => risk !== false)
  const fixes = { memory: fix, database: `also run a process that stays alive, or ${fix}` }
  const remedy = fixes[storage as keyof typeof fixes] ?? 'give it a store that they share'
  if (risks.length > 0) logger.warn({ platform, inbox: name, ack }, `${risks.join('; ')}: ${remedy}${unlessServer}`)
  return losesAcknowledged && !mayOutliveRequests.includes(platform) ? `${stops}${unlessServer}` : undefined
}

/**
 * Returns the reason why a receiver cannot expect events, if it cannot: it acknowledges handled events only, its inbox
 * keeps no expectations, or keeps them in timers that a platform for functions stops after the answer.
 */
export function whyNotExpect(
  { name, storage, expects, outlivesRequests }: InboxDefinition,
  ack: 'accepted' | 'handled',
  configured?: Platform | 'server',
): string | undefined {
  const platform = platformOf(configured)
  if (ack === 'handled') return "it works with ack 'accepted' only"
  if (!expects) return `${name} keeps no expectations`
  if (platform === undefined || platform === 'server' || outlivesRequests === true || storage !== 'memory')
    return undefined
  return (
    `${platform} stops an instance after its answer, and with it the deadlines that ${name} keeps: run the receiver in a ` +
    'process that stays alive'
  )
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `createReceiver: ${message}`)

/** Returns what the receiver was told, unless this is Workers beyond doubt, or else what the environment says. */
const platformOf = (configured: Platform | 'server' | undefined): Platform | 'server' | undefined =>
  requestsEndWork ? 'Cloudflare Workers' : (configured ?? currentPlatform())

/** Returns the platform for functions that this process runs on, if any. */
function currentPlatform(): Platform | undefined {
  if ('Netlify' in globalThis) return 'Netlify'
  try {
    const { env = {} } = (globalThis as { process?: { env?: Record<string, unknown> } }).process ?? {}
    // `vercel env pull` and `netlify dev` set these on a developer's machine too. Empty variables count as absent.
    if (env.VERCEL && env.VERCEL_ENV !== 'development') return 'Vercel'
    if (env.NETLIFY && !env.NETLIFY_DEV) return 'Netlify'
    if (env.AWS_LAMBDA_FUNCTION_NAME) return 'AWS Lambda'
    if (env.K_SERVICE || env.FUNCTION_TARGET) return 'Cloud Run'
    if (env.FUNCTIONS_WORKER_RUNTIME && env.AZURE_FUNCTIONS_ENVIRONMENT !== 'Development') return 'Azure Functions'
    if ('EdgeRuntime' in globalThis) return 'Edge Runtime'
    return env.DENO_DEPLOYMENT_ID ? 'Deno Deploy' : undefined
  } catch {
    // Deno, without the permission to read the environment.
    return undefined
  }
}
