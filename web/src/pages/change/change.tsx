export default function Change() {
  return <h1>Change</h1>;
}
