import { WebhookError } from '../errors.ts'
import type { InboxDefinition } from '../inbox/inbox.ts'
import type { Logger } from '../internal/logger.ts'
import { requestsEndWork } from '../internal/requests.ts'

const anyQueue = 'queueInbox with a queue such as QStash'

/** The inbox that loses no events, by platform. */
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

/** Can be configured to run between requests, which the process can't detect. */
const mayOutliveRequests: readonly string[] = ['Cloud Run', 'Azure Functions', 'Deno Deploy']

/** A platform that stops an instance after its answer and runs several at once. */
export type Platform = keyof typeof inboxes

export const platforms = ['server', ...Object.keys(inboxes)] as (Platform | 'server')[]

/**
 * Warns about a setup that may lose events or handle them twice on its platform.
 * @returns why a delivery without `waitUntil` would be lost; `undefined` if it wouldn't
 * @throws WebhookError `invalid_option` if the setup is certain to lose acknowledged events
 */
export function checkPlatform(
  { name, storage, localKeys, outlivesRequests }: InboxDefinition,
  ack: 'accepted' | 'handled',
  logger: Logger,
  configured?: Platform | 'server',
): string | undefined {
  const platform = choosePlatform(configured)
  if (platform === undefined || platform === 'server' || outlivesRequests === true) return undefined
  const fix = `use ${inboxes[platform]}`
  const isMemory = storage === 'memory'
  const losesAcknowledged = isMemory && ack === 'accepted'
  const alwaysStops = platform === 'AWS Lambda' || platform === 'Cloudflare Workers'
  const unlessServer = alwaysStops ? '' : "; if this process stays alive, set platform: 'server'"
  const stops = `${platform} stops an instance after its answer, and ${name} loses events it has acknowledged: ${fix}`
  if (storage === 'file')
    throw invalid(`${platform} deletes the files of its instances, and with them ${name}: ${fix}${unlessServer}`)
  if (losesAcknowledged && alwaysStops) throw invalid(`${stops}, or ack: 'handled'`)
  const risks = [
    storage === 'database' && `the handlers of ${name} run only while an instance does`,
    localKeys === true && `two instances can handle the same event, because ${name} keeps its keys per instance`,
    losesAcknowledged && `${platform} can end an instance before ${name} has handled its events`,
    isMemory && !losesAcknowledged && 'some senders never repeat an event whose handler failed',
  ].filter((risk) => risk !== false)
  const fixes = { memory: fix, database: `also run a process that stays alive, or ${fix}` }
  const remedy = fixes[storage as keyof typeof fixes] ?? 'give it a shared store'
  if (risks.length > 0) logger.warn({ platform, inbox: name, ack }, `${risks.join('; ')}: ${remedy}${unlessServer}`)
  return losesAcknowledged && !mayOutliveRequests.includes(platform) ? `${stops}${unlessServer}` : undefined
}

/** Returns why `receiver.expect` can't work; `undefined` if it can. Timers in memory die with an instance. */
export function whyNotExpect(
  { name, storage, expects, outlivesRequests }: InboxDefinition,
  ack: 'accepted' | 'handled',
  configured?: Platform | 'server',
): string | undefined {
  const platform = choosePlatform(configured)
  if (ack === 'handled') return "needs ack 'accepted'"
  if (!expects) return `${name} keeps no expectations`
  if (platform === undefined || platform === 'server' || outlivesRequests === true || storage !== 'memory')
    return undefined
  return (
    `${platform} stops an instance after its answer, and with it the deadlines that ${name} keeps: run the receiver in a ` +
    'process that stays alive'
  )
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `createReceiver: ${message}`)

/** The `platform` option wins over the environment, except on Workers, which are detected reliably. */
const choosePlatform = (configured: Platform | 'server' | undefined): Platform | 'server' | undefined =>
  requestsEndWork ? 'Cloudflare Workers' : (configured ?? currentPlatform())

function currentPlatform(): Platform | undefined {
  if ('Netlify' in globalThis) return 'Netlify'
  try {
    const { env = {} } = (globalThis as { process?: { env?: Record<string, unknown> } }).process ?? {}
    // `vercel env pull` and `netlify dev` set these variables on a developer's machine too.
    if (env.VERCEL && env.VERCEL_ENV !== 'development') return 'Vercel'
    if (env.NETLIFY && !env.NETLIFY_DEV) return 'Netlify'
    if (env.AWS_LAMBDA_FUNCTION_NAME) return 'AWS Lambda'
    if (env.K_SERVICE || env.FUNCTION_TARGET) return 'Cloud Run'
    if (env.FUNCTIONS_WORKER_RUNTIME && env.AZURE_FUNCTIONS_ENVIRONMENT !== 'Development') return 'Azure Functions'
    if ('EdgeRuntime' in globalThis) return 'Edge Runtime'
    return env.DENO_DEPLOYMENT_ID ? 'Deno Deploy' : undefined
  } catch {
    // Deno without `--allow-env`.
    return undefined
  }
}
