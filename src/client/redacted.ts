/** A text of others without our secrets and without URLs, whose path, query and `user:password@` can be secrets too. */
export function redacted(text: string, secrets: readonly string[]): string {
  const written = secrets.flatMap((secret) => [secret, encodeURIComponent(secret)])
  const withoutSecrets = written.reduce((rest, each) => rest.replaceAll(each, '[secret]'), text)
  return withoutSecrets.replace(/\bhttps?:\/\/[^\s"'<>]+/gi, '[url]').slice(0, 500)
}
