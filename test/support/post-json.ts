/**
 * Posts a body as JSON, without a signature unless the headers hold one.
 * @param body an object to encode, or text or bytes to send as they are
 */
export const postJson = (url: string | URL, body: object | string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: body instanceof Uint8Array ? new Uint8Array(body) : typeof body === 'string' ? body : JSON.stringify(body),
  })
