import { Choice, Field } from '../../../internal/page/fields.tsx'
import { Section } from '../../../internal/page/section.tsx'
import { type ApiKey, apiKeyTypes } from '../workspace/api-keys.ts'
import { Moment } from './elements.tsx'
import { ActionForm, Deletion, Disclosure } from './forms.tsx'
import { type PageState, typedInto } from './page-state.ts'
import { findPage, ListPager } from './pager.tsx'

export function ApiKeys({ page }: { page: PageState }) {
  const { apiKeys } = page.service.workspace
  const { offset, limit, ...pager } = findPage(page, 'api-keys', apiKeys.list({ limit: 0 }).total, 10)
  const { items } = apiKeys.list({ offset, limit, order_by: 'desc' })
  const typed = typedInto(page, 'api-keys')
  return (
    <Section id="api-keys" title="API keys" shows={['api-keys']}>
      {items.length > 0 && (
        <ul class="cards">
          {items.map((key) => (
            <ApiKeyCard page={page} apiKey={key} />
          ))}
        </ul>
      )}
      <ListPager page={page} list="api-keys" {...pager} />
      <details id="new-api-key" class="card" open={typed !== undefined}>
        <summary>New API key</summary>
        <ActionForm page={page} action="api-keys">
          <Field label="Name" name="name" required value={typed?.get('name') ?? undefined} />
          <Field
            label="Lifetime (ttl) in seconds"
            name="ttl"
            inputmode="numeric"
            value={typed?.get('ttl') ?? '86400'}
            required
          />
          <Choice
            label="Type"
            name="type"
            value={typed?.get('type') ?? undefined}
            options={apiKeyTypes.map((type) => [type] as const)}
          />
          <button type="submit" class="primary">
            Create API key
          </button>
        </ActionForm>
      </details>
    </Section>
  )
}

function ApiKeyCard({ page, apiKey }: { page: PageState; apiKey: ApiKey }) {
  const { id, name, public_key, truncated_secret, type, status, expired_at } = apiKey
  const rename = `api-keys/${id}/rename`
  return (
    <li id={`api-key-${id}`} class="card">
      <h3>{name}</h3>
      <p class="data">{public_key}</p>
      <p class="quiet">
        {type}, secret {truncated_secret}
      </p>
      <p class="quiet">
        {status === 'expired' ? <strong>✕ expired</strong> : 'expires'} at <Moment at={new Date(expired_at)} dated />
      </p>
      <div class="row">
        <Disclosure page={page} label="Rename" subject={name} action={rename}>
          <ActionForm page={page} action={rename}>
            <Field label="New name" name="name" value={typedInto(page, rename)?.get('name') ?? name} required />
            <button type="submit">Rename</button>
          </ActionForm>
        </Disclosure>
        <Deletion
          page={page}
          name={name}
          action={`api-keys/${id}/delete`}
          consequence="Requests that use this key will be rejected."
        />
      </div>
    </li>
  )
}
