import { WebhookError } from '../../errors.ts'
import { createApi } from '../api/app.ts'
import type { Parts } from '../service/parts.ts'
import type { CreatedApiKey } from '../workspace/api-key.ts'

/** What the page needs of an answer of the API. */
interface ApiAnswer {
  readonly message: string
  readonly data: { readonly api_key: CreatedApiKey }
}

/**
 * Lets the page do what a client of the API does: what that is refused, the page is refused in the same words.
 * @returns a function that throws a WebhookError `invalid_option` unless the API answers with success
 */
export function apiCaller(parts: Parts) {
  const api = createApi(parts)
  const headers = { authorization: `Bearer ${parts.credentials.accessToken}`, 'content-type': 'application/json' }
  return async (method: string, path: string, body?: object): Promise<ApiAnswer> => {
    const response = await api.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const answer = (await response.json()) as ApiAnswer
    if (response.ok) return answer
    // The names of fields on the wire are not those of the page.
    throw new WebhookError('invalid_option', answer.message.replace(/^body\.?(api_key_)?/, '').trim())
  }
}
