import { Copyable } from './copyable.tsx'
import { Fact, Facts } from './facts.tsx'
import type { PageState } from './page-state.ts'

/** What a client of the emulator has to know. */
export function Header({ page: { origin, parts } }: { page: PageState }) {
  const { publicKey, secretKey, accessToken } = parts.credentials
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
        <Fact name="Profile">{parts.profile}</Fact>
        <Fact name="Time scale">{parts.timeScale}</Fact>
      </Facts>
      <details id="credentials">
        <summary>Credentials</summary>
        <Facts>
          <Fact name="Public key">
            <Copyable text={publicKey} label="public key" />
          </Fact>
          <Fact name="Secret key">
            <Copyable text={secretKey} label="secret key" />
          </Fact>
          <Fact name="Access token">
            <Copyable text={accessToken} label="access token" />
          </Fact>
        </Facts>
      </details>
    </header>
  )
}
