import { Copyable, Fact, Facts } from '../../../internal/page/elements.tsx'
import { NoticeLine } from '../../../internal/page/notices.tsx'
import { Connection, Shell } from '../../../internal/page/shell.tsx'
import type { EmulatedService } from '../service/service.ts'
import type { Credentials } from '../workspace/workspace.ts'
import { ApiKeys } from './api-keys.tsx'
import { Deliveries } from './deliveries.tsx'
import { MediaSection } from './media.tsx'
import type { PageState } from './page-state.ts'
import { Start } from './start.tsx'
import { makeAddress } from './view.ts'
import { Webhooks } from './webhooks.tsx'

/** The sections by id. The script reloads each on its own. */
export const sections = new Map([
  ['start', Start],
  ['webhooks', Webhooks],
  ['media', MediaSection],
  ['deliveries', Deliveries],
  ['api-keys', ApiKeys],
])

export function Document({ page }: { page: PageState }) {
  return (
    <Shell title="Media service emulator" assets="/page" skipTo={['deliveries-title', 'the deliveries']}>
      <Header page={page} />
      <NoticeLine notice={page.notice} dismissed={makeAddress(page.view)} />
      <main>
        <Start page={page} />
        <Webhooks page={page} />
        <Deliveries page={page} />
        <MediaSection page={page} />
        <ApiKeys page={page} />
      </main>
    </Shell>
  )
}

function Header({ page: { origin, service } }: { page: PageState }) {
  return (
    <header>
      <div class="row">
        <h1>Media service emulator</h1>
        <Connection />
      </div>
      <Facts>
        <Fact name="Base URL">
          <Copyable text={origin} label="base URL" />
        </Fact>
        <Fact name="Profile">{service.profile}</Fact>
        <Fact name="Time scale">{service.timeScale}</Fact>
      </Facts>
      <details id="credentials">
        <summary>Credentials</summary>
        <Facts>
          <Credential service={service} name="publicKey" label="Public key" />
          <Credential service={service} name="secretKey" label="Secret key" />
          <Credential service={service} name="accessToken" label="Access token" />
        </Facts>
      </details>
    </header>
  )
}

interface CredentialProps {
  readonly service: EmulatedService
  readonly name: keyof Credentials
  readonly label: string
}

/** A credential of the account. Any user of this machine can open the page, so secrets from the options stay hidden. */
function Credential({ service, name, label }: CredentialProps) {
  return (
    <Fact name={label}>
      {service.givenSecrets.has(name) ? (
        'as given'
      ) : (
        <Copyable text={service.credentials[name]} label={label.toLowerCase()} />
      )}
    </Fact>
  )
}
