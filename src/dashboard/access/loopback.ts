/** The sender of a request, as far as a server knows it besides the request. */
export interface Caller {
  /** The address of the other end of the connection. `undefined`: nobody knows. */
  readonly remoteAddress: string | undefined
}

const forwarding =
  /^(forwarded|via|x-forwarded(-.+)?|x-original-.+|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-connecting-ip|fastly-client-ip|fly-client-ip)$/

/**
 * Says why a request does not certainly come from this machine; `undefined` if it does. Behind a proxy every request
 * seems to, so a header that proxies add is a reason. A foreign host name is one too: a page of another site can have
 * its name resolved to this machine (DNS rebinding).
 */
export function whyNotLocal({ headers, url }: Request, { remoteAddress }: Caller): string | undefined {
  if (remoteAddress === undefined) return 'Nobody knows which machine this request comes from.'
  if (!isLoopback(remoteAddress)) return 'This request comes from another machine.'
  const header = [...headers.keys()].find((name) => forwarding.test(name))
  if (header !== undefined) return `This request came through a proxy: it has the header ${header}.`
  const host = headers.get('host') ?? new URL(url).host
  if (!/^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(host)) return 'The host is neither localhost nor 127.0.0.1.'
  return undefined
}

const isLoopback = (address: string): boolean => /^(::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/i.test(address)
