import { WebhookError } from '../../../errors.ts'
import type { Notice } from '../../../internal/page/notices.tsx'
import { createApi } from '../api/app.ts'
import type { MediaInput } from '../media/media.ts'
import type { Behaviour, Fault } from '../sending/sending.ts'
import type { EmulatedService } from '../service/service.ts'
import { wireNames } from '../shared/undocumented.ts'
import type { CreatedApiKey } from '../workspace/api-keys.ts'
import { subscriptionFlags } from '../workspace/webhooks.ts'
import { readBehaviourForm, withFormLabels } from './behaviour-form.tsx'
import type { View } from './view.ts'

interface ActionResult extends Notice {
  readonly change?: Partial<View>
}

/** Handles a submitted form. Throws a WebhookError to reject it. */
type Action = (form: URLSearchParams, id: string) => ActionResult | Promise<ActionResult>

/** Creates the form actions, by path below `/page/`. */
export function createActions(service: EmulatedService): Readonly<Record<string, Action>> {
  const call = apiCaller(service)
  return {
    async webhooks(form) {
      await call('POST', '/webhooks', readWebhook(form))
      return { text: 'The webhook was created.' }
    },
    async 'webhooks/:id/edit'(form, id) {
      await call('PATCH', `/webhooks/${id}`, readWebhook(form))
      return { text: 'The webhook was saved.' }
    },
    'webhooks/:id/behaviour'(form, id) {
      try {
        service.behave(id, readBehaviourForm(form))
      } catch (error) {
        throw error instanceof WebhookError ? new WebhookError(error.code, withFormLabels(error.message)) : error
      }
      return { text: 'The behaviour was saved.' }
    },
    async 'webhooks/:id/check'(_, id) {
      const { message } = await call('POST', `/webhooks/check/${id}`)
      return { text: `${message}.` }
    },
    async 'webhooks/:id/delete'(_, id) {
      await call('DELETE', `/webhooks/${id}`)
      return { text: 'The webhook was deleted.', change: { webhook: undefined } }
    },
    async 'api-keys'(form) {
      const { api_key: key } = (await call('POST', '/api_keys', readApiKey(form))).data
      return {
        text: `The API key ${key.name} was created. Copy its secret now: it is not shown again.`,
        values: [
          { name: 'Public key', value: key.public_key },
          { name: 'Secret key', value: key.secret },
        ],
      }
    },
    async 'api-keys/:id/rename'(form, id) {
      await call('PATCH', `/api_keys/${id}`, { [wireNames.apiKeyName]: form.get('name') })
      return { text: 'The API key was renamed.' }
    },
    async 'api-keys/:id/delete'(_, id) {
      await call('DELETE', `/api_keys/${id}`)
      return { text: 'The API key was deleted.' }
    },
    media(form) {
      const { title } = service.addMedia(readMedia(form))
      return { text: `${title} was uploaded.`, change: { pages: {} } }
    },
    'sendings/:id/repeat'(form, id) {
      const { id: sending } = service.repeat(id, readRepetition(form, service, id))
      return { text: 'The event is being sent again.', change: { sending } }
    },
    'sendings/:id/edited'(form, id) {
      const { id: sending } = service.sendEdited(id, form.get('payload') ?? '')
      return { text: 'The edited payload is being sent.', change: { sending } }
    },
  }
}

const readWebhook = (form: URLSearchParams) => ({
  url: form.get('url'),
  name: form.get('name'),
  ...Object.fromEntries(subscriptionFlags.map((flag) => [flag, form.has(flag)])),
})

const readApiKey = (form: URLSearchParams) => {
  const ttl = form.get('ttl') ?? ''
  return {
    [wireNames.apiKeyName]: form.get('name'),
    ttl: /^\d+$/.test(ttl) ? Number(ttl) : ttl,
    type: form.get('type'),
  }
}

const readMedia = (form: URLSearchParams): MediaInput => ({
  ...(form.get('title') && { title: form.get('title') as string }),
  qualities: (form.get('qualities') ?? '').split(',').map((quality) => quality.trim()),
  fails: form.has('fails'),
})

/** The webhook's behaviour with the chosen fault, or `undefined` for its own. */
function readRepetition(
  form: URLSearchParams,
  { outbox, behaviourOf }: EmulatedService,
  id: string,
): Behaviour | undefined {
  const fault = form.get('fault')
  const webhookId = outbox.get(id)?.webhookId
  if (!fault || webhookId === undefined) return undefined
  const { fault: _, ...rest } = behaviourOf(webhookId)
  return fault === 'none' ? rest : { ...rest, fault: fault as Fault }
}

interface ApiAnswer {
  readonly message: string
  readonly data: { readonly api_key: CreatedApiKey }
}

/** Calls the API like any client, so both show the same error messages. */
function apiCaller(service: EmulatedService) {
  const api = createApi(service)
  const headers = { authorization: `Bearer ${service.credentials.accessToken}`, 'content-type': 'application/json' }
  return async (method: string, path: string, body?: object): Promise<ApiAnswer> => {
    const response = await api.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const answer = (await response.json()) as ApiAnswer
    if (response.ok) return answer
    // The page's labels differ from the API's field names.
    throw new WebhookError('invalid_option', answer.message.replace(/^body\.?(api_key_)?/, '').trim())
  }
}
