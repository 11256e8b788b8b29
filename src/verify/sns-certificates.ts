import { type PublicKey, publicKey } from '#crypto'
import { type Certificate, isSpki, readCertificate } from '../internal/crypto/der.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'
import { requestsEndWork } from '../internal/requests.ts'
import { within } from '../internal/timers.ts'
import { decoder } from '../internal/utf8.ts'

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** A certificate with its key, by the `SignatureVersion` that is verified with it. */
export interface SigningCertificate extends Certificate {
  readonly keys: { readonly 1: PublicKey; readonly 2: PublicKey }
}

/** Certificates that are kept. Amazon signs with one per region, and changes it about once a year. */
const maxCertificates = 16

const maxBytes = 16_384
const timeoutMs = 5_000

/** Returns a function that fetches each certificate once, and again after that failed. Calls share a fetch. */
export function certificateCache(fetch: Fetch): (url: string) => Promise<SigningCertificate> {
  const kept = new Map<string, MaybePromise<SigningCertificate>>()
  const keep = (url: string, certificate: MaybePromise<SigningCertificate>) => {
    const [oldest = url] = kept.keys()
    if (kept.size === maxCertificates) kept.delete(oldest)
    kept.set(url, certificate)
  }

  return async (url) => {
    const found = kept.get(url)
    if (found !== undefined) return found
    const fetching = fetchCertificate(fetch, url)
    // On Workers a fetch never settles after its request has ended.
    if (!requestsEndWork) keep(url, fetching)
    try {
      const certificate = await fetching
      if (requestsEndWork) keep(url, certificate)
      return certificate
    } catch (error) {
      kept.delete(url)
      throw error
    }
  }
}

async function fetchCertificate(fetch: Fetch, url: string): Promise<SigningCertificate> {
  const stop = new AbortController()
  const pem = await within(timeoutMs, download(fetch, url, stop.signal), () => {
    stop.abort()
    throw new Error(`${url} was not answered within ${timeoutMs} ms`)
  })
  const certificate = readCertificate(pem)
  const { spki } = certificate
  if (!isSpki('rsa-sha256', spki)) throw new Error(`${url} is not a certificate of an RSA key`)
  return { ...certificate, keys: { 1: publicKey('rsa-sha1', spki), 2: publicKey('rsa-sha256', spki) } }
}

async function download(fetch: Fetch, url: string, signal: AbortSignal): Promise<string> {
  // Workers refuse redirect 'error'. The answer to 'manual' is not ok.
  const response = await fetch(url, { redirect: 'manual', signal })
  if (!response.ok) throw new Error(`${url} was answered ${response.status}`)
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk)
    if (text.length > maxBytes) throw new Error(`${url} has more than ${maxBytes} bytes`)
  }
  return text
}
