import type { Logger } from '../../internal/logger.ts'
import type { DashboardOptions } from '../options.ts'
import { plain } from './respond.ts'

/** Decides who may see the page. Returns the answer to a request that it does not admit. */
export type Access = (request: Request) => Promise<Response | undefined>

/** Makes the rule for all requests: `authorize` decides, and actions have to come from the page itself. */
export function accessRule({ authorize, origin }: DashboardOptions, logger: Logger): Access {
  return async (request) => {
    try {
      const decision: unknown = await authorize(request)
      if (isResponse(decision)) return decision
      return decision === true ? checkOrigin(request, origin) : plain(403, 'You may not see this page.')
    } catch (error) {
      logger.error({ err: error }, 'authorize of the dashboard threw')
      return plain(500, 'The dashboard could not decide whether you may see this page. The log says why.')
    }
  }
}

// Another realm's Response, such as a polyfill's, is not an instance of this one's.
const isResponse = (value: unknown): value is Response =>
  value instanceof Response || (typeof value === 'object' && value !== null && 'status' in value && 'headers' in value)

/** Rejects an action that does not come from a page of this origin: a page of another site can also send forms. */
function checkOrigin({ method, headers, url }: Request, expected: string | undefined): Response | undefined {
  if (method === 'GET' || method === 'HEAD') return undefined
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin') ?? ''
  const isHost = () => hostOf(origin) === (headers.get('host') ?? new URL(url).host)
  const isOwn = expected === undefined ? (site === null ? isHost() : site === 'same-origin') : origin === expected
  return isOwn ? undefined : plain(403, 'Actions have to come from a page of the dashboard itself.')
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
