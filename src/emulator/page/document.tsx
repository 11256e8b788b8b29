import { Copyable, Fact, Facts } from '../../page/elements.tsx'
import { NoticeLine } from '../../page/notices.tsx'
import type { EmulatedService } from '../service/service.ts'
import type { Credentials } from '../workspace/workspace.ts'
import { ApiKeys } from './api-keys.tsx'
import { Deliveries } from './deliveries.tsx'
import { MediaSection } from './media.tsx'
import type { PageState } from './page-state.ts'
import { Start } from './start.tsx'
import { Webhooks } from './webhooks.tsx'

/** The sections of the page, by id. The script reloads each on its own. */
export const sections = new Map([
  ['start', Start],
  ['webhooks', Webhooks],
  ['media', MediaSection],
  ['deliveries', Deliveries],
  ['api-keys', ApiKeys],
])

/** The whole page. */
export function Document({ page }: { page: PageState }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>Media service emulator</title>
        <link rel="icon" href="/page/icon.svg" />
        <link rel="stylesheet" href="/page/style.css" />
        <script type="module" src="/page/browser.js" />
      </head>
      <body>
        <a class="skip" href="#deliveries-title">
          Skip to the deliveries
        </a>
        <Header page={page} />
        <NoticeLine notice={page.notice} view={page.view} />
        <main>
          <Start page={page} />
          <Webhooks page={page} />
          <MediaSection page={page} />
          <Deliveries page={page} />
          <ApiKeys page={page} />
        </main>
        <p id="news" class="unseen" role="status" data-script />
      </body>
    </html>
  )
}

/** The base URL, settings and credentials of the emulator. */
function Header({ page: { origin, service } }: { page: PageState }) {
  return (
    <header>
      <div class="row">
        <h1>Media service emulator</h1>
        <p id="connection" role="status" data-script />
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

/** A credential of the account. Any user of this machine can open the page, so it shows no secret that was given. */
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
