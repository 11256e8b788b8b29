import { WebhookError } from '../../errors.ts'
import type { Logger } from '../../internal/logger.ts'
import { within } from '../../internal/timers.ts'
import type { DashboardOptions } from '../options.ts'
import { plain } from './respond.ts'

/** A person whom `authorize` admits. */
export interface Reader {
  /** `true` if the person may also act. */
  readonly mayAct: boolean
  /** The name, if `authorize` tells it. */
  readonly user?: string
}

/** Decides who may see the page. Returns the answer to a request that it does not admit. */
export type Access = (request: Request) => Promise<Response | Reader>

/** Time for `authorize` (ms). */
const authorizeTimeoutMs = 10_000

/** Makes the rule for all requests: `authorize` decides, and actions have to come from the page itself. */
export function accessRule({ authorize, origin }: DashboardOptions, logger: Logger): Access {
  return async (request) => {
    try {
      const decision: unknown = await within(authorizeTimeoutMs, Promise.resolve(authorize(request)), timedOut)
      if (isResponse(decision)) return decision
      const reader = readerOf(decision)
      if (reader === undefined) return plain(403, 'You may not see this page.')
      if (isGet(request)) return reader
      if (!reader.mayAct) return plain(403, 'You may read these pages only: an action needs more rights.')
      return isSameOrigin(request, origin)
        ? reader
        : plain(403, 'Actions have to come from a page of the dashboard itself.')
    } catch (error) {
      logger.error({ err: error }, 'authorize of the dashboard failed')
      return plain(500, 'The dashboard could not decide whether you may see this page. The log says why.')
    }
  }
}

function timedOut(): never {
  throw new WebhookError(
    'timeout',
    `authorize did not settle within ${authorizeTimeoutMs} ms: give what it asks a time limit`,
  )
}

function readerOf(decision: unknown): Reader | undefined {
  if (decision === true || decision === 'read') return { mayAct: decision === true }
  const { user } = (decision ?? {}) as { readonly user?: unknown }
  return typeof user === 'string' && user !== '' ? { mayAct: true, user } : undefined
}

// Another realm's Response, such as a polyfill's, is not an instance of this one's.
const isResponse = (value: unknown): value is Response =>
  value instanceof Response || (typeof value === 'object' && value !== null && 'status' in value && 'headers' in value)

const isGet = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD'

/** Returns true if an action comes from a page of this origin: a page of another site can also send forms. */
function isSameOrigin({ headers, url }: Request, expected: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin') ?? ''
  const isHost = () => hostOf(origin) === (headers.get('host') ?? new URL(url).host)
  if (expected !== undefined) return origin === expected
  return site === null ? isHost() : site === 'same-origin'
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
