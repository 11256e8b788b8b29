import { equalText } from '#crypto'
import type { DashboardOptions } from '../options.ts'
import { headed, plain } from './respond.ts'

/**
 * Makes an `authorize` for work on your own machine: a random token decides, as in notebooks. It is printed on standard
 * output at once, and the first request without it prints the whole URL. A browser that opens that URL gets a cookie for its session.
 * The host has to be localhost, 127.0.0.1 or [::1].
 *
 * ```ts
 * const page = dashboard(receiver, { authorize: localOnly() })
 * ```
 */
export function localOnly(): DashboardOptions['authorize'] {
  const token = crypto.randomUUID()
  // The address of the server is not known before its first request.
  console.log(`The dashboard opens if you add this to its URL: ?token=${token}`)
  let isPrinted = false
  return tokenRule(token, (url) => {
    if (!isPrinted) console.log(`The dashboard opens with its token: ${url}`)
    isPrinted = true
  })
}

// A page of another site can have its name resolved to this machine (DNS rebinding).
const localHost = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d+))?$/i

/**
 * Makes a rule that admits requests with a token: in the URL, or in the cookie that it then sets.
 * @param onMissingToken is called with the URL that has the token when a request of a local host has no token
 */
export function tokenRule(token: string, onMissingToken?: (url: string) => void): DashboardOptions['authorize'] {
  return ({ headers, url }) => {
    const { protocol, host: ownHost, pathname, searchParams } = new URL(url)
    const host = headers.get('host') ?? ownHost
    const [isLocal, port = ''] = localHost.exec(host) ?? []
    if (isLocal === undefined) return plain(403, 'The host has to be localhost or 127.0.0.1.')
    // Browsers send a cookie to every port of a host.
    const cookie = `media-webhooks${port}=${token}`
    const cookies = headers.get('cookie')?.split('; ') ?? []
    if (cookies.some((each) => equalText(each, cookie))) return true
    if (equalText(searchParams.get('token') ?? '', token)) {
      searchParams.delete('token')
      // The path is relative: one that begins with two slashes would lead to another host.
      const location = `./${pathname.slice(pathname.lastIndexOf('/') + 1)}${searchParams.size > 0 ? '?' : ''}${searchParams}`
      const setCookie = `${cookie}; Path=/; HttpOnly; SameSite=Strict`
      return new Response(null, { status: 303, headers: headed({ location, 'set-cookie': setCookie }) })
    }
    onMissingToken?.(`${protocol}//${host}${pathname}?token=${token}`)
    return plain(
      403,
      'Open this page with the URL that its server has printed on its standard output. That URL has a token.',
    )
  }
}
