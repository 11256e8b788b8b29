/** A text of others without our secrets and without URLs, whose path, query and `user:password@` can be secrets too. */
export function redacted(text: string, secrets: readonly string[]): string {
  const withoutSecrets = secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
  return withoutSecrets.replace(/\bhttps?:\/\/[^\s"'<>]+/gi, '[url]').slice(0, 500)
}
