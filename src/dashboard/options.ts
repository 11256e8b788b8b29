import { WebhookError } from '../errors.ts'
import { checkedApart, checkOptions } from '../internal/check-options.ts'

/** A person who may see the pages and act. Each action is logged with the name. */
export interface Operator {
  /** Such as a user name or an email address. */
  readonly user: string
}

type Decision = boolean | 'read' | Operator | Response

/** The options of `dashboard`. */
export interface DashboardOptions {
  /**
   * The path of the page as its users see it, such as `/inbox`. Links begin with it.
   * @defaultValue '/'
   */
  readonly path?: string
  /**
   * Decides who may see and operate the inbox. It is asked before every answer. `true` lets the request in. `{ user }`
   * does so too, and each action is logged with that name. `'read'` shows every page without its actions, and an action
   * is answered 403. `false` is answered 403. A `Response`, such as a redirect to a sign-in page, is sent as it is. If it
   * throws, or takes longer than 10 s, the answer is 500. On your own machine, `localOnly()` makes one.
   */
  readonly authorize: (request: Request) => Decision | Promise<Decision>
  /**
   * The origin of the page as its users see it, such as `https://ops.example.com`. Actions from another one are answered 403.
   * @defaultValue the host that the request names
   */
  readonly origin?: string
  /**
   * Hides what payloads contain. `true` hides payloads, titles and the bytes of unreadable deliveries. A function returns
   * the payload to show; it gets a copy. A payload for which it throws is hidden. The text of handlers' errors is
   * shown.
   * @defaultValue everything is shown
   */
  readonly redact?: true | ((payload: Record<string, unknown>) => Record<string, unknown>)
}

/**
 * The members of Node's request that {@link Dashboard.node} uses. The requests of Express and others also have them.
 */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** The whole address, if a router has shortened `url`. */
  readonly originalUrl?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly socket: object
  /** The body that a body parser before it has read. */
  readonly body?: unknown
  readonly readableDidRead?: boolean | undefined
}

/** The members of Node's response that {@link Dashboard.node} uses. */
export interface NodeResponse {
  readonly headersSent: boolean
  readonly destroyed?: boolean | undefined
  writeHead(status: number, headers: Record<string, string | string[]>): unknown
  write(part: Uint8Array): boolean
  end(body?: Uint8Array): unknown
  /** `drain`: more can be written. `close`: the connection has ended. */
  once(event: 'drain' | 'close', listener: () => void): unknown
  destroy(): unknown
}

/** The page of an inbox. */
export interface Dashboard {
  /** Answers a request, for frameworks that pass a web `Request`: Hono, Next.js, Bun, Deno. */
  fetch(this: void, request: Request): Promise<Response>
  /** Answers a request of Node's server, for `node:http`, Express, Koa and Fastify. */
  node(this: void, request: NodeRequest, response: NodeResponse): Promise<void>
}

/**
 * Checks the options, and returns them with their defaults.
 * @throws WebhookError `invalid_option`
 */
export function checkDashboardOptions(options: DashboardOptions): DashboardOptions & { readonly path: string } {
  const rules = { path: checkedApart, authorize: checkedApart, origin: checkedApart, redact: checkedApart }
  checkOptions<DashboardOptions>('dashboard', options, rules)
  const { path = '/', authorize, origin, redact } = options ?? {}
  if (typeof path !== 'string' || !/^(\/[\w.~!$&'()*+,;=:@%-]+)*\/?$/.test(path) || path === '')
    throw invalid("path has to begin with a slash, such as '/inbox'")
  if (typeof authorize !== 'function')
    throw invalid(
      "give authorize, a function that returns true, { user }, 'read', false or a Response, or localOnly() on your own machine",
    )
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).origin === origin))
    throw invalid("origin has to be a scheme and a host, such as 'https://ops.example.com'")
  if (redact !== undefined && redact !== true && typeof redact !== 'function')
    throw invalid('redact has to be true or a function that returns the payload to show')
  return { ...options, path: path.replace(/\/$/, '') }
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `dashboard: ${message}`)
